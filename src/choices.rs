//! Choices of the command line that stand for those of the library.

/// An enum of clap whose values, with their help, are those of an enum of the library.
macro_rules! choices {
    ($(#[$of_enum:meta])* $vis:vis enum $name:ident for $library:ident { $($(#[$help:meta])* $value:ident,)+ }) => {
        $(#[$of_enum])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
        $vis enum $name { $($(#[$help])* $value,)+ }

        impl From<$name> for $library {
            fn from(choice: $name) -> $library {
                match choice { $($name::$value => $library::$value,)+ }
            }
        }
    };
}

pub(crate) use choices;
