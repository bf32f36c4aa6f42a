//! The pieces of which every shape of expansion is made.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::{Ident, Path, ReturnType, Type, ext::IdentExt, spanned::Spanned};

use super::{
    check::{Checked, Mode, Named},
    options::Key,
    returns::{self, Returns},
};
use crate::{hygiene::glue, kind::Kind};

/// So many attributes stand inline behind a span; the others are recorded one call later.
const INLINE: usize = 8;
/// Level of a span without a declared stage.
const DEFAULT_LEVEL: u8 = 2;

pub(super) struct Pieces<'a> {
    stage: &'a Checked,
    /// The path of the runtime's private module.
    st: &'a TokenStream,
    /// The static of this place in the source. The user's block sees it, hence the unlikely name.
    site: Ident,
    /// The constant that is its stage.
    constant: Ident,
    /// The static of a name without a stage set.
    info: Ident,
    /// The local that holds the block's value.
    value: Ident,
    /// The type of that local.
    hint: Type,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(stage: &'a Checked, st: &'a TokenStream) -> Self {
        Self {
            stage,
            st,
            site: format_ident!("__STAGETRACE_SITE", span = Span::call_site()),
            constant: format_ident!("__STAGETRACE_STAGE", span = Span::call_site()),
            info: format_ident!("__STAGETRACE_INFO", span = Span::call_site()),
            value: format_ident!("__value", span = Span::mixed_site()),
            hint: returns::hint(&stage.sig.output),
        }
    }

    pub(super) fn private(&self) -> &TokenStream {
        self.st
    }

    /// The block's value.
    pub(super) fn value(&self) -> &Ident {
        &self.value
    }

    pub(super) fn reference(&self) -> TokenStream {
        let value = &self.value;
        glue!(&#value)
    }

    /// `static`s with the constant facts.
    pub(super) fn site(&self) -> TokenStream {
        let (st, site, constant) = (self.st, &self.site, &self.constant);
        let kind = Kind::expand(self.stage.kind, st);
        let keys = self.keys();
        let function = self.stage.sig.ident.unraw().to_string();
        let (info, stage) = match &self.stage.stage {
            Named::Stage(path) => (None, stage_of(path)),
            Named::Free(name) => {
                let info = &self.info;
                let declared = glue! {
                    static #info: #st::StageInfo = #st::StageInfo::new(
                        "",
                        #name,
                        #DEFAULT_LEVEL,
                        ::core::option::Option::None,
                    );
                };
                (Some(declared), glue!(#st::Stage::new(&#info)))
            }
        };
        glue! {
            #info
            const #constant: #st::Stage = #stage;
            static #site: #st::Site = #st::Site::new(
                #constant,
                #kind,
                &[#(#keys),*],
                ::core::concat!(::core::module_path!(), "::", #function),
                ::core::file!(),
                ::core::line!(),
            );
        }
    }

    /// Begins a sync span: an expression that gives the guard.
    pub(super) fn begin(&self) -> TokenStream {
        let (st, site, constant) = (self.st, &self.site, &self.constant);
        let inline = self.values(0, self.inline_values());
        let with = self.method_of_values("with");
        let values = inline.map(|values| glue!(|__begin| __begin.#with(#values)));
        let suffix = if values.is_some() { "_with" } else { "" };
        let (verb, position) = match self.position() {
            _ if self.stage.detached => ("enter_detached", None),
            Some(position) => ("enter_of", Some(position)),
            None => ("enter", None),
        };
        let enter = format_ident!("{verb}{suffix}", span = Span::call_site());
        let more = position.into_iter().chain(values);
        glue!(#st::#enter::<{ #constant.shape() }>(&#site #(, #more)*))
    }

    /// Reads the parent of an async span: an expression that gives what runs the future.
    pub(super) fn prepare(&self) -> TokenStream {
        let (st, site) = (self.st, &self.site);
        match self.position() {
            _ if self.stage.detached => glue!(#st::prepare_detached(&#site)),
            Some(position) => glue!(#st::prepare_of(&#site, #position)),
            None => glue!(#st::prepare(&#site)),
        }
    }

    /// How many attributes are recorded as the span begins.
    pub(super) fn inline_values(&self) -> usize {
        self.stage.values.len().min(INLINE)
    }

    /// Statements that record the attributes from `first` on, on the span that has just begun.
    pub(super) fn late_values(&self, first: usize) -> TokenStream {
        let (st, site) = (self.st, &self.site);
        let set = self.method_of_values("set");
        let count = self.stage.values.len();
        let chunks = (first..count).step_by(INLINE).map(|from| {
            let values = self.values(from, count.min(from + INLINE));
            glue!(#st::record_current(&#site, #from, |__late| __late.#set(#values));)
        });
        chunks.collect()
    }

    /// A closure that judges what the future gave.
    pub(super) fn judge_closure(&self) -> TokenStream {
        let output = format_ident!("__output", span = Span::mixed_site());
        let judge = self.judge(&output.to_token_stream());
        glue!(|#output| #judge)
    }

    /// Judges what `reference` refers to, and records it if that was asked for.
    pub(super) fn judge(&self, reference: &TokenStream) -> TokenStream {
        let judge = self.judge_alone(reference);
        let site = &self.site;
        match self.record_return(&glue!(&#site), reference) {
            Some(record) => glue!({ #record; #judge }),
            None => judge,
        }
    }

    fn judge_alone(&self, reference: &TokenStream) -> TokenStream {
        let st = self.st;
        match self.stage.mode {
            Mode::Default => glue!(#st::judge!(DEFAULT, #reference)),
            Mode::NoErr => glue!(#st::judge!(NO_ERR, #reference)),
            Mode::Err(option) => {
                let at = Span::mixed_site().located_at(option);
                let (st, reference) = (respanned(st, at), respanned(reference, at));
                quote_spanned!(at=> #st::judge!(ERR, #reference))
            }
        }
    }

    /// Records what was returned, if that was asked for. The compiler underlines its type if it
    /// cannot be.
    fn record_return(&self, site: &TokenStream, reference: &TokenStream) -> Option<TokenStream> {
        let ReturnType::Type(_, ty) = &self.stage.sig.output else {
            return None;
        };
        self.stage.ret.then(|| {
            let at = Span::mixed_site().located_at(ty.span());
            let (st, reference) = (respanned(self.st, at), respanned(reference, at));
            quote_spanned!(at=> #st::record_return(#site, #reference))
        })
    }

    /// The user's block, braces and all, as the initialiser of a local. The statement ends where
    /// the block does, for messages about temporaries. Clippy takes a block that ends in `panic!`
    /// for a mistake there.
    pub(super) fn block(&self) -> TokenStream {
        let (typed, block) = (self.typed_value(), &self.stage.block);
        let at = Span::mixed_site().located_at(block.span_close());
        let semicolon = quote_spanned!(at=> ;);
        glue! {
            #[allow(clippy::diverging_sub_expression)]
            let #typed = #block #semicolon
        }
    }

    /// The local and its type, as a `let` has them.
    pub(super) fn typed_value(&self) -> TokenStream {
        let (value, hint) = (&self.value, &self.hint);
        match hint {
            Type::Infer(_) => glue!(#value),
            hint => glue!(#value: #hint),
        }
    }

    /// Returns the local from the user's function. A block that never ends makes it unreachable.
    pub(super) fn give_back(&self) -> TokenStream {
        match self.stage.returns {
            Returns::Never => {
                let value = &self.value;
                glue! {
                    #[allow(unreachable_code)]
                    match #value {};
                }
            }
            _ => self.give_back_from_closure(),
        }
    }

    /// Returns the local from a closure or an `async` block around the user's block.
    pub(super) fn give_back_from_closure(&self) -> TokenStream {
        let value = &self.value;
        glue! {
            #[allow(unreachable_code)]
            return #value;
        }
    }

    /// `-> T` for a closure around the user's block; nothing if it is left to inference.
    pub(super) fn closure_output(&self) -> TokenStream {
        match &self.hint {
            Type::Infer(_) => TokenStream::new(),
            hint => glue!(-> #hint),
        }
    }

    /// Tells an `async` block its type before the user's first `return` or `?`, which need it.
    pub(super) fn pin_output(&self) -> TokenStream {
        let hint = &self.hint;
        match (hint, &self.stage.sig.output) {
            (Type::Infer(_), _) | (_, ReturnType::Default) => TokenStream::new(),
            _ => glue! {
                if let ::core::option::Option::Some(__never) =
                    ::core::option::Option::<#hint>::None
                {
                    return __never;
                }
            },
        }
    }

    /// Compiles the arguments without evaluating them.
    pub(super) fn checks(&self) -> TokenStream {
        let st = self.st;
        let named = match &self.stage.stage {
            Named::Stage(path) => {
                let stage = stage_of(path);
                glue!(const _: #st::Stage = #stage;)
            }
            Named::Free(name) => glue!(const _: &::core::primitive::str = #name;),
        };
        let keys = (!self.stage.values.is_empty()).then(|| {
            let keys = self.keys();
            glue!(const _: &[&::core::primitive::str] = &[#(#keys),*];)
        });
        let position = self.position().map(|position| glue!(let _ = #position;));
        let with = self.method_of_values("with");
        let count = self.stage.values.len();
        let values = (0..count).step_by(INLINE).map(|from| {
            let values = self.values(from, count.min(from + INLINE));
            glue!(let _ = |__begin: #st::Begin<'_>| __begin.#with(#values);)
        });
        let values: TokenStream = values.collect();
        let unevaluated = position.into_iter().chain((!values.is_empty()).then_some(values));
        let unevaluated: TokenStream = unevaluated.collect();
        // Diverges, so that no borrow reaches the user's code: a future would keep what was borrowed.
        let unevaluated = (!unevaluated.is_empty()).then(|| {
            glue! {
                if false {
                    #unevaluated
                    ::core::unreachable!()
                }
            }
        });
        glue!(#named #keys #unevaluated)
    }

    /// A method that takes the attributes' values. With the user's span, the compiler looks into
    /// the user's expressions for the one that cannot be recorded, and underlines it.
    fn method_of_values(&self, name: &str) -> Ident {
        let first = self.stage.values.first();
        Ident::new(name, first.map_or_else(Span::call_site, |(_, value)| value.span()))
    }

    /// The same for the options that look at the block's value.
    pub(super) fn checks_of_value(&self) -> TokenStream {
        if self.stage.returns != Returns::Value {
            return TokenStream::new();
        }
        let site = format_ident!("__site", span = Span::mixed_site());
        let text = matches!(self.stage.mode, Mode::Err(_)).then(|| {
            let judge = self.judge_alone(&self.reference());
            glue!(#[allow(unreachable_code)] let _ = || #judge;)
        });
        let returned = self.record_return(&glue!(#site), &self.reference()).map(|record| {
            let st = self.st;
            glue!(#[allow(unreachable_code)] let _ = |#site: &'static #st::Site| #record;)
        });
        glue!(#text #returned)
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.stage.values.iter().map(|(key, _)| key)
    }

    /// A tuple of references to the attributes' values; `None` if there are none.
    fn values(&self, from: usize, to: usize) -> Option<TokenStream> {
        let values = self.stage.values.get(from..to)?.iter().map(|(_, value)| {
            let at = Span::mixed_site().located_at(value.span());
            quote_spanned!(at=> &(#value))
        });
        let values: Vec<TokenStream> = values.collect();
        (!values.is_empty()).then(|| glue!((#(#values,)*)))
    }

    /// A closure that looks where the request is, and checks that it accepts the stage.
    fn position(&self) -> Option<TokenStream> {
        let place = self.stage.place.as_ref()?;
        let at = Span::mixed_site().located_at(place.span());
        let st = respanned(self.st, at);
        let located = quote_spanned!(at=> #st::locate(&#place));
        Some(match &self.stage.stage {
            Named::Stage(path) => {
                let at = Span::mixed_site().located_at(path.span());
                let on = quote_spanned!(at=> .on(&#path));
                glue!(|| #located #on)
            }
            Named::Free(_) => glue!(|| #located.position()),
        })
    }
}

/// The handle of a stage, be `path` a variant or a constant.
fn stage_of(path: &Path) -> TokenStream {
    let last = path.segments.last().map_or_else(Span::call_site, |last| last.ident.span());
    let method = Ident::new("stage", Span::mixed_site().located_at(last));
    glue!(#path.#method())
}

/// The same tokens, which the compiler shows at `span` when they are part of a mistake.
fn respanned(tokens: &TokenStream, span: Span) -> TokenStream {
    let tokens = tokens.clone().into_iter();
    tokens
        .map(|mut token| {
            // What it refers to stays the same.
            token.set_span(token.span().located_at(span));
            token
        })
        .collect()
}
