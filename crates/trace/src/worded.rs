//! Enums of words.

/// An enum with a word for each variant, which stands beside it: the method that gives the word, all variants in their order (`ALL`),
/// and the one of a word (`named`). Behind a colon there may be a second text, with a method of its own.
///
/// ```
/// tracequet_trace::worded! {
///     /// Which way is good.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Better {
///         /// Less of it.
///         Lower = "lower",
///         /// More of it.
///         Higher = "higher",
///     }
///     /// The word of JSON.
///     pub fn word;
/// }
/// assert_eq!(Better::Lower.word(), "lower");
/// assert_eq!(Better::named("higher"), Some(Better::Higher));
/// ```
#[macro_export]
macro_rules! worded {
    ($(#[$of_enum:meta])* $vis:vis enum $name:ident { $($(#[$of_variant:meta])* $variant:ident = $word:literal,)+ }
     $(#[$of_method:meta])* $of:vis fn $method:ident;) => {
        $(#[$of_enum])*
        $vis enum $name { $($(#[$of_variant])* $variant,)+ }

        #[allow(dead_code, reason = "not each enum is listed or found by its word")]
        impl $name {
            /// All of them, in their order.
            $vis const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            $(#[$of_method])*
            $of fn $method(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The one of a word.
            $vis fn named(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.$method() == word)
            }
        }
    };
    ($(#[$of_enum:meta])* $vis:vis enum $name:ident {
         $($(#[$of_variant:meta])* $variant:ident = $word:literal: $text:literal,)+
     }
     $(#[$of_method:meta])* $of:vis fn $method:ident;
     $(#[$of_second:meta])* $of_more:vis fn $second:ident;) => {
        $crate::worded! {
            $(#[$of_enum])* $vis enum $name { $($(#[$of_variant])* $variant = $word,)+ }
            $(#[$of_method])* $of fn $method;
        }

        impl $name {
            $(#[$of_second])*
            $of_more fn $second(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
    };
}
