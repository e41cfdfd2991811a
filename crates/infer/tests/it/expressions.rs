//! Arithmetic on extents.

use heirloom_infer::Expr;

fn parse(text: &str) -> Expr {
    Expr::declared(text).unwrap()
}

fn number(value: i64) -> Expr {
    Expr::number(value)
}

// proves: GB3
#[test]
fn sums_in_any_order_are_the_same_expression() {
    let (a, b) = (parse("past + new"), parse("new + past"));
    assert_eq!(a, b);
    assert_eq!(a.minus(&parse("past")).unwrap(), Expr::symbol("new"));
    assert_eq!(a.plus(&number(1)).unwrap().to_string(), "new + past + 1");
    assert_eq!(parse("2*s0").plus(&parse("s0")).unwrap().to_string(), "3*s0");
    assert_eq!(a.minus(&b).unwrap().as_number(), Some(0));
}

#[test]
fn quotients_take_out_what_the_divisor_divides() {
    let n = Expr::symbol("n");
    let half = |e: &Expr| e.floor_div(&number(2)).unwrap();
    assert_eq!(half(&n.times(&number(4)).unwrap().plus(&number(3)).unwrap()).to_string(), "2*n + 1");
    assert_eq!(half(&n.minus(&number(1)).unwrap()).to_string(), "floor((n + 1)/2) - 1");
    // floor(floor(n/2)/2) = floor(n/4)
    assert_eq!(half(&half(&n)).to_string(), "floor(n/4)");
    assert_eq!(n.ceil_div(&number(16)).unwrap().to_string(), "floor((n + 15)/16)");
    assert_eq!(n.floor_div(&number(0)), None);
}

#[test]
fn a_product_is_divided_by_one_of_its_factors() {
    let whole = Expr::product(&[parse("batch"), parse("past + new"), number(64)]).unwrap();
    let rest = whole.exact_quotient(&parse("64*past + 64*new")).unwrap();
    assert_eq!(rest, Expr::symbol("batch"));
    assert_eq!(whole.exact_quotient(&number(128)), None);
    assert_eq!(whole.exact_quotient(&Expr::symbol("other")), None);
}

#[test]
fn extents_are_never_negative_and_that_decides_comparisons() {
    let n = Expr::symbol("n");
    assert!(n.plus(&number(1)).unwrap().differs(&n));
    assert!(n.differs(&number(-1)));
    assert!(!n.differs(&number(0)));
    assert_eq!(n.greater_of(&number(0)).unwrap(), n);
    assert_eq!(n.lesser_of(&n.plus(&number(3)).unwrap()).unwrap(), n);
    assert_eq!(n.greater_of(&number(4)).unwrap().to_string(), "max(4, n)");
    assert_eq!(parse("n").minus(&number(7)).unwrap().least(), Some(-7));
    assert_eq!(n.modulo(&number(8)).unwrap().most(), Some(7));
}

#[test]
fn names_that_read_as_arithmetic_are_it_and_others_are_symbols() {
    assert_eq!(
        parse("past_sequence_length + 1").minus(&Expr::symbol("past_sequence_length")).unwrap(),
        number(1)
    );
    assert_eq!(parse("s0//2").to_string(), "floor(s0/2)");
    for name in ["batch-size", "input.1", "Addpast_dim_2", "x:0", "floor(n/2)", "2nd", "(a", "a b"] {
        assert_eq!(parse(name), Expr::symbol(name), "{name}");
    }
    for name in ["", "?", "None", "-1"] {
        assert_eq!(Expr::declared(name), None, "{name:?}");
    }
}

#[test]
fn a_value_follows_from_the_extents() {
    let e = parse("2*n + 1").floor_div(&number(3)).unwrap().times(&Expr::symbol("m")).unwrap();
    let at = |n: i64, m: i64| e.value(&move |name| if name == "n" { Some(n) } else { Some(m) });
    assert_eq!(at(4, 5), Some(15));
    assert_eq!(at(0, 5), Some(0));
    assert_eq!(e.value(&|name| (name == "n").then_some(1)), None);
    assert_eq!(at(i64::MAX, 2), None);
}

#[test]
fn what_grows_without_bound_or_overflows_is_unknown() {
    let mut sum = number(0);
    let mut grown = true;
    for at in 0..100 {
        match sum.plus(&Expr::symbol(&format!("s{at}"))) {
            Some(next) => sum = next,
            None => grown = false,
        }
    }
    assert!(!grown);
    assert_eq!(number(i64::MAX).plus(&number(1)), None);
    assert_eq!(number(i64::MIN).floor_div(&number(-1)), None);
    let mut deep = Expr::symbol("n");
    for at in 0..64 {
        match deep.floor_div(&Expr::symbol(&format!("d{at}"))) {
            Some(next) => deep = next,
            None => return,
        }
    }
    panic!("divided 64 times");
}
