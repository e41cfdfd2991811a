//! The implementation that the attributes ask for.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Ident, Path, Result, parse_quote};

use crate::attributes::{Component, Constant, Declared, OfField, OfRecord};

pub(crate) fn native_record(input: &DeriveInput) -> Result<TokenStream> {
    let record = OfRecord::read(&input.attrs)?;
    let fields = named_fields(input)?;
    if !input.generics.params.is_empty() {
        return Err(Error::new(
            input.generics.span(),
            "a native record has no parameters: its bytes are one type's",
        ));
    }
    if !is_repr_c(input)? {
        let message =
            "a native record needs `#[repr(C)]`: elsewhere the compiler chooses the order of fields";
        return Err(Error::new(input.ident.span(), message));
    }
    let Some(type_id) = record.type_id else {
        let message = "a native record needs the identity that it is bound to: `#[record(type_id = 2001)]`";
        return Err(Error::new(input.ident.span(), message));
    };
    let native = &input.ident;
    let name = record.name.map_or_else(|| native.to_string(), |name| name.value());
    let types = record.types.unwrap_or_else(|| parse_quote!(::heirloom_types));

    let (mut declares, mut offsets, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for field in fields {
        let of_field = OfField::read(&field.attrs)?;
        declares.extend(of_field.constants.iter().map(constant));
        let (ident, ty) = (ident(field)?, &field.ty);
        let name = of_field.name.map_or_else(|| ident.to_string(), |name| name.value());
        let declared = of_field.declared.as_ref().map_or_else(
            || quote_spanned!(ty.span()=> <#ty as #types::NativeField>::value_type()),
            |declared| value_type(declared, &types),
        );
        declares.push(quote!(let record = record.typed(#name, #declared);));
        offsets.push(quote!((#name, ::core::mem::offset_of!(#native, #ident))));
        sizes.push(quote!(::core::mem::size_of::<#ty>()));
    }
    declares.extend(record.constants.iter().map(constant));
    let padded = format!("`{native}` has padding between or behind its fields: declare it as fields");
    let zero = format!("the identity of `{native}` is 0; identities are not");

    // Full paths, so that expressions of attributes mean what they mean where they stand.
    Ok(quote! {
        const _: () = {
            ::core::assert!(<#native as #types::NativeRecord>::TYPE_ID != 0, #zero);
            ::core::assert!(::core::mem::size_of::<#native>() == 0 #(+ #sizes)*, #padded);

            impl #types::NativeRecord for #native {
                const TYPE_ID: u64 = #type_id;

                fn declaration() -> ::core::result::Result<::std::sync::Arc<#types::StructType>, #types::Fault> {
                    let record = #types::StructType::structure(#name)
                        .type_id(<#native as #types::NativeRecord>::TYPE_ID);
                    #(#declares)*
                    record.build()
                }

                fn offsets() -> ::std::vec::Vec<(&'static str, usize)> {
                    ::std::vec::Vec::from([#(#offsets),*])
                }
            }

            impl #types::NativeField for #native {
                fn value_type() -> #types::ValueType {
                    #types::derive::nested::<#native>()
                }
            }
        };
    })
}

fn named_fields(input: &DeriveInput) -> Result<impl Iterator<Item = &Field>> {
    let span = input.ident.span();
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(span, "a native record is a struct"));
    };
    match &data.fields {
        Fields::Named(fields) if !fields.named.is_empty() => Ok(fields.named.iter()),
        _ => Err(Error::new(span, "a native record has named fields: the declaration names them")),
    }
}

fn ident(field: &Field) -> Result<&Ident> {
    field.ident.as_ref().ok_or_else(|| Error::new(field.span(), "a native record has named fields"))
}

fn is_repr_c(input: &DeriveInput) -> Result<bool> {
    let mut found = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            found |= meta.path.is_ident("C");
            // `packed(2)` and `align(8)`: what they do to the layout is checked by its size and offsets.
            if meta.input.peek(syn::token::Paren) {
                let inner;
                syn::parenthesized!(inner in meta.input);
                inner.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    Ok(found)
}

fn constant(constant: &Constant) -> TokenStream {
    let Constant { name, value } = constant;
    let name = name.to_string();
    quote!(let record = record.constant(#name, #value);)
}

fn value_type(declared: &Declared, types: &Path) -> TokenStream {
    let scalar = |dtype| quote!(#types::ValueType::tensor(#types::derive::DType::#dtype, &[]));
    match declared {
        Declared::Value(value) => quote!(#value),
        Declared::Tensor { dtype, shape } => {
            quote!(#types::ValueType::tensor(#types::derive::DType::#dtype, &[#shape]))
        }
        Declared::Array { dtype, count } => {
            let element = scalar(dtype);
            quote!(#types::ValueType::Struct(#types::StructType::array("", #element, #count).build()?))
        }
        Declared::Bits { components, count } => {
            let components = components.iter().map(|Component { name, width }| {
                let name = name.to_string();
                quote!((#name, #width))
            });
            quote!(#types::ValueType::Struct(
                #types::StructType::bit_packing("", &[#(#components),*], #count).build()?
            ))
        }
    }
}
