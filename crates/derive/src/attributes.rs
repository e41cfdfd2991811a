//! What `#[record(…)]` says.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Expr, Ident, LitStr, Path, Result, Token, bracketed, parenthesized};

/// A constant of the format.
pub(crate) struct Constant {
    pub(crate) name: Ident,
    pub(crate) value: Expr,
}

/// The declared type of a field.
pub(crate) enum Declared {
    Array { dtype: Ident, count: Expr },
    Tensor { dtype: Ident, shape: Punctuated<Expr, Token![,]> },
    Bits { components: Punctuated<Component, Token![,]>, count: Expr },
    Value(Expr),
}

pub(crate) struct Component {
    pub(crate) name: Ident,
    pub(crate) width: Expr,
}

/// One item of a list.
enum Item {
    TypeId(Expr),
    Name(LitStr),
    Crate(Path),
    Constant(Constant),
    Declared(Declared),
}

/// What stands on the struct.
#[derive(Default)]
pub(crate) struct OfRecord {
    pub(crate) type_id: Option<Expr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) types: Option<Path>,
    pub(crate) constants: Vec<Constant>,
}

/// What stands on a field.
#[derive(Default)]
pub(crate) struct OfField {
    pub(crate) name: Option<LitStr>,
    pub(crate) declared: Option<Declared>,
    pub(crate) constants: Vec<Constant>,
}

impl OfRecord {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<OfRecord> {
        let mut found = OfRecord::default();
        for (key, item) in items(attributes)? {
            match item {
                Item::TypeId(id) => set(&mut found.type_id, id, &key)?,
                Item::Name(name) => set(&mut found.name, name, &key)?,
                Item::Crate(path) => set(&mut found.types, path, &key)?,
                Item::Constant(constant) => found.constants.push(constant),
                Item::Declared(_) => return Err(misplaced(&key, "a field")),
            }
        }
        Ok(found)
    }
}

impl OfField {
    pub(crate) fn read(attributes: &[Attribute]) -> Result<OfField> {
        let mut found = OfField::default();
        for (key, item) in items(attributes)? {
            match item {
                Item::Name(name) => set(&mut found.name, name, &key)?,
                Item::Declared(declared) => set(&mut found.declared, declared, &key)?,
                Item::Constant(constant) => found.constants.push(constant),
                Item::TypeId(_) | Item::Crate(_) => return Err(misplaced(&key, "the struct")),
            }
        }
        Ok(found)
    }
}

fn set<T>(place: &mut Option<T>, value: T, key: &Key) -> Result<()> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::new(key.span, format!("`{}` says again what was said already", key.text))),
    }
}

fn misplaced(key: &Key, place: &str) -> Error {
    Error::new(key.span, format!("`{}` belongs on {place}", key.text))
}

/// The word that an item begins with.
struct Key {
    text: String,
    span: proc_macro2::Span,
}

fn items(attributes: &[Attribute]) -> Result<Vec<(Key, Item)>> {
    let mut all = Vec::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("record")) {
        let list = attribute.parse_args_with(Punctuated::<Keyed, Token![,]>::parse_terminated)?;
        all.extend(list.into_iter().map(|Keyed(key, item)| (key, item)));
    }
    Ok(all)
}

struct Keyed(Key, Item);

impl Parse for Keyed {
    fn parse(input: ParseStream<'_>) -> Result<Keyed> {
        let span = input.span();
        let key = |text: &str| Key { text: text.into(), span };
        if input.peek(Token![const]) {
            input.parse::<Token![const]>()?;
            let name = input.parse()?;
            input.parse::<Token![=]>()?;
            return Ok(Keyed(key("const"), Item::Constant(Constant { name, value: input.parse()? })));
        }
        if input.peek(Token![crate]) {
            input.parse::<Token![crate]>()?;
            input.parse::<Token![=]>()?;
            return Ok(Keyed(key("crate"), Item::Crate(input.parse()?)));
        }
        let word: Ident = input.parse()?;
        let text = word.to_string();
        let item = match &*text {
            "type_id" | "name" | "ty" => {
                input.parse::<Token![=]>()?;
                match &*text {
                    "type_id" => Item::TypeId(input.parse()?),
                    "name" => Item::Name(input.parse()?),
                    _ => Item::Declared(Declared::Value(input.parse()?)),
                }
            }
            "array" | "tensor" | "bits" => {
                let inner;
                parenthesized!(inner in input);
                let declared = match &*text {
                    "array" => array(&inner)?,
                    "tensor" => tensor(&inner)?,
                    _ => bits(&inner)?,
                };
                if !inner.is_empty() {
                    return Err(inner.error(format!("`{text}` takes nothing more")));
                }
                Item::Declared(declared)
            }
            _ => {
                let known = "`type_id`, `name`, `crate` and `const` on the struct, \
                             `name`, `array`, `tensor`, `bits`, `ty` and `const` on a field";
                return Err(Error::new(span, format!("`{text}` is none of {known}")));
            }
        };
        Ok(Keyed(key(&text), item))
    }
}

fn array(inner: ParseStream<'_>) -> Result<Declared> {
    let dtype = inner.parse()?;
    inner.parse::<Token![,]>()?;
    Ok(Declared::Array { dtype, count: inner.parse()? })
}

fn tensor(inner: ParseStream<'_>) -> Result<Declared> {
    let dtype = inner.parse()?;
    inner.parse::<Token![,]>()?;
    let extents;
    bracketed!(extents in inner);
    Ok(Declared::Tensor { dtype, shape: Punctuated::parse_terminated(&extents)? })
}

fn bits(inner: ParseStream<'_>) -> Result<Declared> {
    let mut components = Punctuated::new();
    loop {
        let name = inner.parse()?;
        inner.parse::<Token![:]>()?;
        components.push_value(Component { name, width: inner.parse()? });
        if inner.peek(Token![;]) {
            break;
        }
        components.push_punct(inner.parse()?);
    }
    inner.parse::<Token![;]>()?;
    Ok(Declared::Bits { components, count: inner.parse()? })
}
