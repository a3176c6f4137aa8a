//! Which code is the framework's, and which is the user's own: by where a file lies and what an assembly is called.

use tracequet_trace::pattern::fits;

/// The patterns that a person gave for user code ("own" in options and columns).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnCode {
    /// Patterns of own assemblies or methods. With one or more, nothing else is own.
    pub own: Vec<String>,
    /// Patterns of assemblies or methods that are not own.
    pub not_own: Vec<String>,
}

/// The code of a frame, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'p> {
    /// Simple name of the assembly.
    pub assembly: Option<&'p str>,
    /// Path of the file with the code.
    pub path: Option<&'p str>,
    /// The type of a method; empty of other code.
    pub type_name: &'p str,
    /// The method or function, as the frame names it, without arguments.
    pub name: &'p str,
    /// The maker of the code.
    pub made_by: MadeBy,
}

/// A maker of code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MadeBy {
    /// A compiler of native code.
    #[default]
    Native,
    /// The JIT, or a compiler of .NET before it: it is a method of .NET.
    Managed,
    /// NativeAOT, which puts methods, their assemblies and the runtime into one file.
    NativeAot,
}

/// Folders of what comes with .NET, in small letters and with slashes: the shared framework, packs of references,
/// assemblies of .NET Framework, packages.
const FOLDERS: &[&str] = &[
    "/shared/microsoft.",
    "/packs/microsoft.",
    "/host/fxr/",
    "/microsoft.net/framework",
    "/microsoft.net/assembly/",
    "/assembly/gac",
    "/assembly/nativeimages_",
    "/.nuget/packages/",
];

/// Assemblies of .NET; those that end with a dot stand for all that begin so.
const ASSEMBLIES: &[&str] = &[
    "System", "System.", "Microsoft.", "mscorlib", "netstandard", "WindowsBase", "PresentationCore",
    "PresentationFramework", "UIAutomationProvider", "UIAutomationTypes", "FSharp.Core", "Mono.",
];

/// Beginnings of the names of methods that .NET makes while the program runs: stubs of the runtime, what expressions (routes of a minimal API
/// are some) and regular expressions are compiled to.
const MADE: &[&str] = &["IL_STUB", "lambda_method", "Regex"];

/// Namespaces of .NET, of methods whose assembly is not known.
const NAMESPACES: &[&str] = &["System.", "Microsoft.", "Internal.", "Interop"];

/// Files of the runtime beside a program that carries it, without `lib` before and what is behind a dot.
const RUNTIME: &[&str] =
    &["coreclr", "clrjit", "clrgc", "clrgcexp", "clr", "clrnt", "mscorwks", "mscoree", "hostfxr", "hostpolicy"];
const HOSTS: &[&str] = &["dotnet", "corerun", "mscordaccore", "mscordbi", "clretwrc", "coreclrtraceptprovider"];

/// Folders of the system, in small letters and with slashes, at the beginning of a path.
const SYSTEM: &[&str] = &["/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/system/", "/systemroot/"];

/// Files without a name: memory that was made executable.
const NO_FILE: &[&str] = &["/memfd:", "//anon", "anon_inode", "[", "/dev/"];

impl OwnCode {
    /// Whether code is the framework's; `None` when that is not known: no file and no name says whose it is.
    pub fn is_framework(&self, place: &Place<'_>) -> Option<bool> {
        let is_named = |pattern: &String| {
            place.assembly.is_some_and(|assembly| matches(pattern, assembly)) || matches(pattern, place.name)
        };
        if self.not_own.iter().any(is_named) {
            return Some(true);
        }
        if !self.own.is_empty() {
            return Some(!self.own.iter().any(is_named));
        }
        match place.made_by {
            MadeBy::Managed => managed(place),
            MadeBy::NativeAot => native_aot(place.name),
            MadeBy::Native => native(place.path?),
        }
    }
}

fn managed(place: &Place<'_>) -> Option<bool> {
    // Methods that are made while the program runs. Of others than these it is not known who made them.
    if place.type_name.eq_ignore_ascii_case("dynamicClass") {
        let name = method_of(place.name);
        return MADE.iter().any(|start| name.starts_with(start)).then_some(true);
    }
    let is_in_folder = place.path.is_some_and(|path| {
        let path = plain(path);
        FOLDERS.iter().any(|folder| path.contains(folder))
    });
    let is_called = place.assembly.is_some_and(|assembly| ASSEMBLIES.iter().any(|known| is_one(known, assembly)));
    if is_in_folder || is_called {
        return Some(true);
    }
    if place.assembly.is_some() {
        return Some(false);
    }
    // Without an assembly the name of the type is all there is.
    let is_of_framework = NAMESPACES.iter().any(|start| place.type_name.starts_with(start));
    if place.type_name.is_empty() { None } else { Some(is_of_framework) }
}

/// Methods are called `Assembly_Namespace_Type__Method`, where `System.Private` is `S_P`. What is called otherwise is
/// the runtime, which is linked into each program, or a library beside it. Source: dotnet/runtime,
/// `NativeAotNameMangler.cs`.
fn native_aot(name: &str) -> Option<bool> {
    if name.is_empty() {
        return None;
    }
    let is_of_framework = ["S_P_", "System_", "Microsoft_"].iter().any(|start| name.starts_with(start));
    let (of, method) = name.split_once("__").unwrap_or_default();
    Some(is_of_framework || of.is_empty() || method.is_empty())
}

fn native(path: &str) -> Option<bool> {
    let path = plain(path);
    if path.is_empty() || NO_FILE.iter().any(|start| path.starts_with(start)) {
        return (path == "[vdso]").then_some(true);
    }
    let file = path.rsplit('/').next().unwrap_or(&path);
    let stem = file.split('.').next().unwrap_or(file);
    let stem = stem.strip_prefix("lib").unwrap_or(stem);
    let is_runtime = RUNTIME.contains(&stem) || HOSTS.contains(&stem);
    // libSystem.Native.so, System.Private.CoreLib.ni.dll
    let is_library = ["system.", "microsoft.", "libsystem.", "mscorlib."].iter().any(|start| file.starts_with(start));
    let is_system = SYSTEM.iter().any(|start| path.starts_with(start)) || path.contains("/windows/");
    Some(is_runtime || is_library || is_system || FOLDERS.iter().any(|folder| path.contains(folder)))
}

/// A path in small letters and with slashes. Of a long one the end is looked at.
fn plain(path: &str) -> String {
    let from = (path.len().saturating_sub(4 << 10)..=path.len()).find(|from| path.is_char_boundary(*from));
    let path = from.and_then(|from| path.get(from..)).unwrap_or_default();
    path.to_ascii_lowercase().replace('\\', "/")
}

fn is_one(known: &str, assembly: &str) -> bool {
    if known.ends_with('.') { assembly.starts_with(known) } else { assembly == known }
}

/// The part of a name behind the type.
fn method_of(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Whether a text matches a pattern, in which `*` stands for anything and `?` for one character; letters match in
/// either case.
pub fn matches(pattern: &str, text: &str) -> bool {
    let is = |pattern: &[u8], letter: u8| {
        pattern.first().is_some_and(|own| *own == b'?' || own.eq_ignore_ascii_case(&letter)).then_some(1)
    };
    fits(text.as_bytes(), pattern.as_bytes(), b'*', is)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn managed(assembly: Option<&str>, path: Option<&str>, type_name: &str) -> Option<bool> {
        let name = format!("{type_name}.Run");
        OwnCode::default().is_framework(&Place { assembly, path, type_name, name: &name, made_by: MadeBy::Managed })
    }

    fn native(path: &str) -> Option<bool> {
        OwnCode::default().is_framework(&Place { path: Some(path), ..Place::default() })
    }

    #[test]
    fn the_framework_is_known_by_folder_and_name() {
        assert_eq!(managed(Some("System.Private.CoreLib"), None, "System.String"), Some(true));
        assert_eq!(managed(Some("Systems"), Some("/app/Systems.dll"), "Systems.Run"), Some(false));
        assert_eq!(managed(Some("Shop"), Some("/app/Shop.dll"), "Shop.Orders"), Some(false));
        let shared = "/usr/share/dotnet/shared/Microsoft.AspNetCore.App/8.0.1/Kestrel.dll";
        assert_eq!(managed(Some("Kestrel"), Some(shared), "Kestrel"), Some(true));
        let gac = r"C:\Windows\Microsoft.Net\assembly\GAC_MSIL\Contoso\v4.0\Contoso.dll";
        assert_eq!(managed(Some("Contoso"), Some(gac), "Contoso.A"), Some(true));
        // Without an assembly the type says it, and without either nothing does.
        assert_eq!(managed(None, None, "System.Threading.Monitor"), Some(true));
        assert_eq!(managed(None, None, "Shop.Orders"), Some(false));
        assert_eq!(managed(None, None, ""), None);
        assert_eq!(managed(Some("Shop"), None, "Systematic.A"), Some(false));
        let stub = Place {
            type_name: "dynamicClass",
            name: "dynamicClass.IL_STUB_PInvoke",
            made_by: MadeBy::Managed,
            ..Place::default()
        };
        assert_eq!(OwnCode::default().is_framework(&stub), Some(true));
        for (name, expected) in [("lambda_method1", Some(true)), ("Regex12_Scan", Some(true)), ("MyEmitted", None)] {
            let made = Place { name: &format!("dynamicClass.{name}"), ..stub };
            assert_eq!(OwnCode::default().is_framework(&made), expected, "{name}");
        }
    }

    #[test]
    fn native_files_are_known_by_folder_and_name() {
        for path in [
            "/opt/app/libcoreclr.so",
            "/opt/app/libSystem.Native.so",
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            r"\Device\HarddiskVolume3\Windows\System32\ntdll.dll",
            r"C:\app\hostfxr.dll",
            "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.0/libclrjit.so",
            "[vdso]",
        ] {
            assert_eq!(native(path), Some(true), "{path}");
        }
        assert_eq!(native("/opt/app/libshop.so"), Some(false));
        assert_eq!(native("/memfd:doublemapper (deleted)"), None);
        assert_eq!(native(""), None);
        assert_eq!(OwnCode::default().is_framework(&Place::default()), None);
    }

    #[test]
    fn patterns_decide_before_all_else() {
        let own = |own: &[&str], not_own: &[&str], assembly: &str, name: &str| {
            let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
            let place =
                Place { assembly: Some(assembly), name, type_name: "T", made_by: MadeBy::Managed, ..Place::default() };
            OwnCode { own: texts(own), not_own: texts(not_own) }.is_framework(&place)
        };
        assert_eq!(own(&["shop*"], &[], "Shop.Data", "Shop.Data.A"), Some(false));
        assert_eq!(own(&["Shop*"], &[], "Dapper", "Dapper.SqlMapper"), Some(true), "nothing else is own");
        assert_eq!(own(&["Microsoft.Mine"], &[], "Microsoft.Mine", "Microsoft.Mine.A"), Some(false));
        assert_eq!(own(&["Shop*"], &["Shop.Log*"], "Shop.Logging", "Shop.Logging.A"), Some(true));
        assert_eq!(own(&[], &["Dapper"], "Dapper", "Dapper.SqlMapper"), Some(true));
        assert_eq!(own(&[], &["*.Generated.*"], "Shop", "Shop.Generated.Client"), Some(true));
        assert_eq!(own(&[], &["Dapper"], "Shop", "Shop.A"), Some(false));
    }

    #[test]
    fn patterns_match_as_globs_do() {
        for (pattern, text, expected) in [
            ("Shop*", "Shop", true),
            ("*op*er", "shopkeeper", true),
            ("*op*er", "shopkeepers", false),
            ("a?c", "aBc", true),
            ("", "", true),
            ("", "a", false),
            ("**", "a", true),
            ("a*b*c", "a1b2b3c", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
