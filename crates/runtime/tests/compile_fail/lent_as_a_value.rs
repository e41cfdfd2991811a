use heirloom_mem::LentTensor;
use heirloom_runtime::{Feeds, Session, State};

fn initial(session: &Session, x: LentTensor<'_>) {
    let _ = session.make_state([("s", x)]);
}

fn reset(state: &State, x: LentTensor<'_>) {
    let _ = state.reset([("s", x)]);
}

fn fed(x: LentTensor<'_>) -> Feeds<'static> {
    Feeds::new().with("x", x)
}

fn main() {}
