//! What a function returns: a value, nothing ever, or a future.

use syn::{
    GenericArgument, PathArguments, PathSegment, ReturnType, Type, TypeParamBound, TypePath,
    parse_quote,
    visit_mut::{self, VisitMut},
};

/// What the call gives back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Returns {
    Value,
    /// `-> !`
    Never,
    /// `-> impl Future`
    Future,
    /// `-> Pin<Box<dyn Future>>`, or a name by which it is known.
    BoxedFuture,
}

/// Judges the type alone, never the body, so that what other macros made of an `async fn` counts
/// too.
pub(super) fn classify(output: &ReturnType) -> Returns {
    let ReturnType::Type(_, ty) = output else {
        return Returns::Value;
    };
    match bare(ty) {
        Type::Never(_) => Returns::Never,
        Type::ImplTrait(ty) if ty.bounds.iter().any(is_future) => Returns::Future,
        Type::Path(ty) if is_boxed_future(ty) => Returns::BoxedFuture,
        _ => Returns::Value,
    }
}

/// The type for the block's value, with every `impl` in it left to inference; the unit type if none
/// is written; a type without values for `!`, which cannot be named.
pub(super) fn hint(output: &ReturnType) -> Type {
    match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => match bare(ty) {
            Type::Never(_) => parse_quote!(::core::convert::Infallible),
            ty => {
                let mut ty = ty.clone();
                EraseImpl.visit_type_mut(&mut ty);
                ty
            }
        },
    }
}

/// The type inside of parentheses and of the invisible groups of `macro_rules!`.
fn bare(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            ty => return ty,
        };
    }
}

fn is_future(bound: &TypeParamBound) -> bool {
    match bound {
        TypeParamBound::Trait(bound) => {
            bound.path.segments.last().is_some_and(|last| last.ident == "Future")
        }
        _ => false,
    }
}

fn is_boxed_future(ty: &TypePath) -> bool {
    let Some(last) = ty.path.segments.last() else {
        return false;
    };
    if last.ident == "BoxFuture" || last.ident == "LocalBoxFuture" {
        return true;
    }
    last.ident == "Pin"
        && only_type_argument(last).is_some_and(|held| match held {
            Type::Path(path) => path.path.segments.last().is_some_and(|last| {
                last.ident == "Box" && only_type_argument(last).is_some_and(is_dyn_future)
            }),
            _ => false,
        })
}

fn is_dyn_future(ty: &Type) -> bool {
    match ty {
        Type::TraitObject(object) => object.bounds.iter().any(is_future),
        _ => false,
    }
}

fn only_type_argument(segment: &PathSegment) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(bare(ty)),
        _ => None,
    }
}

struct EraseImpl;

impl VisitMut for EraseImpl {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::ImplTrait(_) = ty {
            *ty = syn::parse_quote!(_);
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::{ToTokens, quote};

    use super::*;

    fn output(tokens: proc_macro2::TokenStream) -> ReturnType {
        syn::parse2(tokens).expect("a return type")
    }

    #[test]
    fn futures_are_known_by_their_type() {
        let futures =
            [quote!(-> impl Future<Output = u32>), quote!(-> impl Send + std::future::Future)];
        for one in futures {
            assert!(classify(&output(one)) == Returns::Future);
        }
        let boxed = [
            quote!(-> Pin<Box<dyn Future<Output = u32> + Send + 'a>>),
            quote!(-> ::core::pin::Pin<::std::boxed::Box<dyn ::core::future::Future>>),
            quote!(-> BoxFuture<'a, u32>),
        ];
        for one in boxed {
            assert!(classify(&output(one)) == Returns::BoxedFuture);
        }
        let values =
            [quote!(), quote!(-> Pin<Box<u32>>), quote!(-> Box<dyn Fn()>), quote!(-> impl Fn())];
        for one in values {
            assert!(classify(&output(one)) == Returns::Value);
        }
        assert!(classify(&output(quote!(-> !))) == Returns::Never);
    }

    #[test]
    fn impl_is_left_to_inference_at_any_depth() {
        let hint = hint(&output(quote!(-> Result<Vec<impl Display>, (E, impl Fn())>)));
        assert_eq!(
            hint.into_token_stream().to_string(),
            quote!(Result<Vec<_>, (E, _)>).to_string()
        );
    }
}
