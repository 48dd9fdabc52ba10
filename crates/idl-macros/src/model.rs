//! The trait as data: methods, and where each parameter travels.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, Ident, ItemTrait, Lit, Pat, PathArguments, Result,
    ReturnType, TraitItem, Type, Visibility, spanned::Spanned,
};

/// Words that carry scalars: 1 to 4; with a delegated entry word 4 is the badge, with a window its word.
const SCALAR_WORDS: usize = 4;
/// Words of a call of an interface of words.
pub const ALL_WORDS: usize = 9;
/// Those of them that carry scalars: 1 to 8.
const ALL_SCALAR_WORDS: usize = ALL_WORDS - 1;
/// Lengths that fit above the method number in word 0.
const LENGTHS: usize = 3;
/// Attributes that a method may have.
const OF_METHODS: [&str; 6] = ["doc", "repeatable", "stateful", "of", "allow", "expect"];
/// Bits of a method's number that are its place in the interface. The ten above them are the interface's tag.
const PLACE_BITS: u32 = 6;
/// Methods that an interface can have.
const MAX_METHODS: usize = (1 << PLACE_BITS) - 1;

/// An interface.
pub struct Interface {
    pub visibility: Visibility,
    pub attributes: Vec<Attribute>,
    pub name: Ident,
    /// Says of a call that it is one of this interface: see [`tag`].
    pub tag: u64,
    /// All of it travels in registers: `#[interface(words)]`.
    pub is_of_words: bool,
    pub methods: Vec<Method>,
}

/// A method.
pub struct Method {
    /// Bits 0 to 15 of word 0: the tag of the interface `of`, and the method's place, from 1 on.
    pub number: u64,
    /// The interface of the tag.
    pub of: Ident,
    pub attributes: Vec<Attribute>,
    /// It does no harm to call it again when a server died in it: `#[repeatable]`.
    pub is_repeatable: bool,
    /// It means something of an earlier call, which a successor does not know: `#[stateful]`.
    pub is_stateful: bool,
    pub name: Ident,
    pub parameters: Vec<Parameter>,
    pub returns: Returns,
    pub error: Type,
}

/// A parameter.
pub struct Parameter {
    pub name: Ident,
    pub ty: Type,
    pub place: Place,
    /// Its bytes may come as whole pages that the caller shows: `#[window]`.
    pub is_window: bool,
}

/// Where a parameter travels.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this word.
    Word(usize),
    /// In the message area: this is the how-manieth of the eight-byte values at its start.
    Overflow(usize),
    /// Text in the area; the how-manieth length in word 0.
    Text(usize),
    /// Bytes in the area.
    Bytes(usize),
    /// Bytes that come back; the length in word 0 is the capacity.
    Output(usize),
    /// The delegated entry.
    Delegate,
    /// In words from this one on, so many.
    Block(usize, usize),
}

/// The results of a method.
pub struct Returns {
    /// An entry comes back.
    pub delegated: bool,
    /// The type of the words, `()` if none.
    pub words: Type,
    /// How many words carry them.
    pub limit: usize,
    /// The first word says how many bytes of the output are valid.
    pub counts_output: bool,
    /// The first word is a `usize`.
    pub counts: bool,
}

impl Interface {
    /// Reads a trait; every refusal points at the place.
    pub fn read(arguments: &TokenStream, item: &ItemTrait) -> Result<Self> {
        let is_of_words = match arguments.to_string().as_str() {
            "" => false,
            "words" => true,
            _ => return Err(Error::new(arguments.span(), "an interface is one of messages, or `#[interface(words)]`")),
        };
        if !item.generics.params.is_empty() || !item.supertraits.is_empty() {
            return Err(Error::new(item.ident.span(), "an interface has no type parameters and no supertraits"));
        }
        let mut methods = Vec::new();
        if item.items.len() > MAX_METHODS {
            return Err(Error::new(item.ident.span(), format!("an interface has at most {MAX_METHODS} methods")));
        }
        for (position, part) in item.items.iter().enumerate() {
            let TraitItem::Fn(function) = part else {
                return Err(Error::new(part.span(), "an interface has only methods"));
            };
            methods.push(Method::read(&item.ident, position as u64 + 1, is_of_words, function)?);
        }
        let (visibility, attributes, name) = (item.vis.clone(), item.attrs.clone(), item.ident.clone());
        let tag = tag(&name);
        Ok(Self { visibility, attributes, name, tag, is_of_words, methods })
    }

    /// Whether a method takes windows.
    pub fn has_windows(&self) -> bool {
        self.methods.iter().any(|method| method.window().is_some())
    }
}

impl Method {
    fn read(interface: &Ident, place: u64, is_of_words: bool, function: &syn::TraitItemFn) -> Result<Self> {
        let signature = &function.sig;
        if let Some(body) = &function.default {
            return Err(Error::new(body.span(), "a method of an interface has no body"));
        }
        let mut inputs = signature.inputs.iter();
        match inputs.next() {
            Some(FnArg::Receiver(receiver)) if receiver.reference.is_some() && receiver.mutability.is_none() => {}
            _ => return Err(Error::new(signature.span(), "a method of an interface takes &self")),
        }
        let (returns, error) = read_result(&signature.output, signature.span())?;
        let mut plain = Vec::new();
        for input in inputs {
            let FnArg::Typed(typed) = input else {
                return Err(Error::new(input.span(), "unexpected receiver"));
            };
            let Pat::Ident(pattern) = &*typed.pat else {
                return Err(Error::new(typed.pat.span(), "a parameter is a name"));
            };
            let is_window = typed.attrs.iter().any(|attribute| attribute.path().is_ident("window"));
            plain.push((pattern.ident.clone(), (*typed.ty).clone(), is_window));
        }
        let parameters = if is_of_words { assign_words(plain)? } else { assign(plain)? };
        let mut returns = returns;
        if is_of_words {
            if returns.delegated {
                return Err(Error::new(signature.output.span(), ONLY_WORDS));
            }
            returns.limit = ALL_SCALAR_WORDS;
        }
        check_windows(&parameters, &returns)?;
        returns.counts_output &= parameters.iter().any(|parameter| matches!(parameter.place, Place::Output(_)));
        let has = |name: &str| function.attrs.iter().any(|attribute| attribute.path().is_ident(name));
        for attribute in &function.attrs {
            if !OF_METHODS.iter().any(|known| attribute.path().is_ident(known)) {
                let text = "a method of an interface can be #[repeatable] or #[stateful], or #[of(Interface)], and has documentation";
                return Err(Error::new(attribute.span(), text));
            }
        }
        if has("repeatable") && has("stateful") {
            return Err(Error::new(signature.ident.span(), "a call that is not made to a successor is not repeated"));
        }
        let mut others = function.attrs.iter().filter(|attribute| attribute.path().is_ident("of"));
        let of = others.next().map_or_else(|| Ok(interface.clone()), |other| other.parse_args())?;
        Ok(Self {
            number: tag(&of) << PLACE_BITS | place,
            of,
            attributes: function.attrs.clone(),
            is_repeatable: has("repeatable"),
            is_stateful: has("stateful"),
            name: signature.ident.clone(),
            parameters,
            returns,
            error,
        })
    }

    /// Eight-byte values at the start of the area.
    pub fn overflow(&self) -> usize {
        self.parameters.iter().filter(|parameter| matches!(parameter.place, Place::Overflow(_))).count()
    }

    /// Parameters whose bytes go along, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|parameter| matches!(parameter.place, Place::Text(_) | Place::Bytes(_)))
    }

    /// The parameter whose bytes come back, and its length's number.
    pub fn output(&self) -> Option<(&Parameter, usize)> {
        self.parameters.iter().find_map(|parameter| match parameter.place {
            Place::Output(length) => Some((parameter, length)),
            _ => None,
        })
    }

    /// The parameter whose bytes may come in a window.
    pub fn window(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.is_window)
    }

    /// Whether an entry goes along.
    pub fn delegates(&self) -> Option<&Parameter> {
        self.parameters.iter().find(|parameter| parameter.place == Place::Delegate)
    }

    /// Whether the message area is used at all.
    pub fn uses_area(&self) -> bool {
        self.overflow() > 0 || self.inputs().next().is_some() || self.output().is_some()
    }
}

/// Ten bits of a hash (FNV-1a) of an interface's name, never 0. A call of a method has them in its number, so that a server of another interface does
/// not take it for one of its own.
fn tag(name: &Ident) -> u64 {
    let hash = name
        .to_string()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash % 0x3ff + 1
}

/// Gives each parameter its place.
fn assign(plain: Vec<(Ident, Type, bool)>) -> Result<Vec<Parameter>> {
    let delegates = plain.iter().filter(|(_, ty, _)| is_named(ty, "Delegate")).count();
    let has_window = plain.iter().any(|(.., is_window)| *is_window);
    let words = if delegates > 0 || has_window { SCALAR_WORDS - 1 } else { SCALAR_WORDS };
    let (mut scalars, mut lengths, mut outputs) = (0, 0, 0);
    let mut parameters = Vec::new();
    for (name, ty, is_window) in plain {
        let span = ty.span();
        let mut length = |limit: &str| {
            lengths += 1;
            if lengths > LENGTHS { Err(Error::new(span, limit)) } else { Ok(lengths - 1) }
        };
        let limit = "at most three parameters of bytes: their lengths share word 0 with the method number";
        let place = match &ty {
            Type::Reference(reference) => {
                let inner = reference.elem.to_token_stream().to_string();
                match (inner.as_str(), reference.mutability.is_some()) {
                    ("str", false) => Place::Text(length(limit)?),
                    ("[u8]", false) => Place::Bytes(length(limit)?),
                    ("[u8]", true) => {
                        outputs += 1;
                        if outputs > 1 {
                            return Err(Error::new(span, "at most one parameter of bytes that come back"));
                        }
                        Place::Output(length(limit)?)
                    }
                    _ => return Err(Error::new(span, "references are &str, &[u8] or &mut [u8]")),
                }
            }
            _ if is_named(&ty, "Delegate") => {
                if delegates > 1 {
                    return Err(Error::new(span, "a call delegates at most one entry"));
                }
                Place::Delegate
            }
            _ => {
                scalars += 1;
                if scalars <= words { Place::Word(scalars) } else { Place::Overflow(scalars - words - 1) }
            }
        };
        parameters.push(Parameter { name, ty, place, is_window });
    }
    Ok(parameters)
}

/// Refuses forms that a method with a window cannot have.
fn check_windows(parameters: &[Parameter], returns: &Returns) -> Result<()> {
    let mut windows = parameters.iter().filter(|parameter| parameter.is_window);
    let Some(window) = windows.next() else { return Ok(()) };
    let refuse = |text: &str| Err(Error::new(window.name.span(), text));
    if windows.next().is_some() {
        return refuse("a call brings at most one window");
    }
    if !matches!(window.place, Place::Bytes(_) | Place::Output(_)) {
        return refuse("a window is one of bytes: &[u8] or &mut [u8]");
    }
    if returns.delegated || parameters.iter().any(|parameter| parameter.place == Place::Delegate) {
        return refuse("an entry and a window cannot go along together: word 4 is of one of them");
    }
    if parameters.iter().any(|parameter| matches!(parameter.place, Place::Output(_)) && !parameter.is_window) {
        return refuse("bytes come back in the window, or in the message, not both");
    }
    if !returns.counts {
        return refuse("a method with a window gives how many bytes it took or gave: its result begins with usize");
    }
    Ok(())
}

const ONLY_WORDS: &str = "an interface of words passes scalars and [u64; N], nothing else";

/// The same for an interface of words.
fn assign_words(plain: Vec<(Ident, Type, bool)>) -> Result<Vec<Parameter>> {
    let mut next = 1;
    let mut parameters = Vec::new();
    for (name, ty, is_window) in plain {
        if is_window {
            return Err(Error::new(name.span(), ONLY_WORDS));
        }
        let first = next;
        let place = match &ty {
            Type::Array(array) if array.elem.to_token_stream().to_string() == "u64" => {
                let Expr::Lit(ExprLit { lit: Lit::Int(count), .. }) = &array.len else {
                    return Err(Error::new(array.len.span(), "the number of words is a literal"));
                };
                let count = count.base10_parse()?;
                next += count;
                Place::Block(first, count)
            }
            Type::Path(_) if !is_named(&ty, "Delegate") => {
                next += 1;
                Place::Word(first)
            }
            _ => return Err(Error::new(ty.span(), ONLY_WORDS)),
        };
        if next > 1 + ALL_SCALAR_WORDS {
            return Err(Error::new(ty.span(), "a method of an interface of words passes at most eight"));
        }
        parameters.push(Parameter { name, ty, place, is_window });
    }
    Ok(parameters)
}

/// Whether a type's last path segment is this name.
fn is_named(ty: &Type, name: &str) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == name),
        _ => false,
    }
}

/// Takes `Result<T, E>` apart.
fn read_result(output: &ReturnType, span: proc_macro2::Span) -> Result<(Returns, Type)> {
    let wrong = || Error::new(span, "a method of an interface returns Result<T, E>");
    let ReturnType::Type(_, ty) = output else { return Err(wrong()) };
    let Type::Path(path) = &**ty else { return Err(wrong()) };
    let segment = path.path.segments.last().filter(|segment| segment.ident == "Result").ok_or_else(wrong)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Err(wrong()) };
    let types: Vec<&Type> = arguments
        .args
        .iter()
        .filter_map(|argument| if let GenericArgument::Type(ty) = argument { Some(ty) } else { None })
        .collect();
    let [value, error] = types[..] else { return Err(wrong()) };
    Ok((read_value(value)?, error.clone()))
}

/// `Delegated`, `(Delegated, T)` or words.
fn read_value(value: &Type) -> Result<Returns> {
    let delegated =
        |words| Returns { delegated: true, words, limit: SCALAR_WORDS - 1, counts_output: false, counts: false };
    if is_named(value, "Delegated") {
        return Ok(delegated(syn::parse_quote!(())));
    }
    if let Type::Tuple(tuple) = value
        && let Some(first) = tuple.elems.first()
        && is_named(first, "Delegated")
    {
        return match tuple.elems.len() {
            2 => Ok(delegated(tuple.elems[1].clone())),
            _ => Err(Error::new(value.span(), "write (Delegated, T), where T may be a tuple")),
        };
    }
    let first = match value {
        Type::Tuple(tuple) => tuple.elems.first(),
        other => Some(other),
    };
    let counts_output = first.is_some_and(|ty| is_named(ty, "usize"));
    let words = value.clone();
    Ok(Returns { delegated: false, words, limit: SCALAR_WORDS, counts_output, counts: counts_output })
}

/// The tokens of a type as one would write it.
pub fn text_of(ty: &impl ToTokens) -> String {
    let text = ty.to_token_stream().to_string();
    let replacements = [("& ", "&"), (" :: ", "::"), ("( ", "("), (" )", ")"), (" ,", ","), (" < ", "<"), (" >", ">")];
    replacements.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

/// Doc comments only.
pub fn docs(attributes: &[Attribute]) -> TokenStream {
    attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).map(ToTokens::to_token_stream).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str, methods: &str) -> Result<Interface> {
        let item = syn::parse_str(&format!("trait Example {{ {methods} }}"))?;
        Interface::read(&words.parse()?, &item)
    }

    #[test]
    fn bad_methods_are_reported() {
        let refused = [
            (
                "#[repeatible] fn a(&self) -> Result<(), E>;",
                "a method of an interface can be #[repeatable] or #[stateful]",
            ),
            ("#[repeatable] #[stateful] fn a(&self) -> Result<(), E>;", "a call that is not made to a successor"),
            ("#[of] fn a(&self) -> Result<(), E>;", "expected attribute arguments in parentheses"),
            ("#[of(a::B)] fn a(&self) -> Result<(), E>;", "unexpected token"),
            ("fn a() -> Result<(), E>;", "a method of an interface takes &self"),
            ("fn a(&mut self) -> Result<(), E>;", "a method of an interface takes &self"),
            ("fn a(&self) -> Result<(), E> { Ok(()) }", "a method of an interface has no body"),
            ("const A: u64;", "an interface has only methods"),
            ("fn a(&self, a: &str, b: &str, c: &str, d: &str) -> Result<(), E>;", "at most three parameters of bytes"),
        ];
        for (methods, text) in refused {
            let error = read("", methods).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with(text), "{methods}: {error}");
        }
        let methods =
            |count| (0..count).map(|number| format!("fn m{number}(&self) -> Result<(), E>;")).collect::<String>();
        let error = read("", &methods(64)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("an interface has at most 63 methods"), "{error}");
        assert!(read("", &methods(63)).is_ok());
        let error = read("numbers", "").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("an interface is one of messages"), "{error}");
        let read_of =
            |of: &str| read("", &format!("{of} fn read(&self) -> Result<(), E>;")).map(|it| it.methods[0].number);
        let [own, other] = [read_of(""), read_of("#[of(Stream)]")].map(|number| number.unwrap_or_default());
        assert_eq!((own & 63, other & 63), (1, 1));
        assert_ne!(own, other);
        assert!(read("", "/// Text. \n #[repeatable] fn a(&self, a: &str) -> Result<u64, E>;").is_ok());
    }
}
