//! The options that say which code is the user's own.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use tracequet::facts::code::own::OwnCode;

#[derive(Clone, Debug, Default, Args)]
pub struct OwnArgs {
    /// Assemblies or methods of your own, such as 'Shop*'; repeatable [default: what does not come with .NET]
    ///
    /// With it nothing else is your own code. Without it, code is the framework's when its file lies in a shared
    /// framework, in reference packs, among packages or in a folder of the system, and when its assembly is called
    /// System.*, Microsoft.*, mscorlib or netstandard.
    #[arg(long, value_name = "GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub own: Vec<String>,
    /// Assemblies or methods that are not your own, such as 'Dapper*'; repeatable
    #[arg(long, value_name = "GLOB", value_parser = NonEmptyStringValueParser::new())]
    pub not_own: Vec<String>,
}

impl OwnArgs {
    /// The patterns.
    pub fn patterns(&self) -> OwnCode {
        OwnCode { own: self.own.clone(), not_own: self.not_own.clone() }
    }
}
