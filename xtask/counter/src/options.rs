//! The plugin's options: `socket=PATH`, `marked=PATH`, `executed=PATH`, `recorded=PATH`, `places=PATH` and `results=PATH`.

/// The arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where a socket is made, at which the count can be asked for.
    pub socket: Option<String>,
    /// The file for what is counted between marks.
    pub marked: Option<String>,
    /// The file for which instructions were executed there.
    pub executed: Option<String>,
    /// The file for the order in which instructions are executed, when a client asks for it.
    pub recorded: Option<String>,
    /// The file that says where a lock is taken and given back, and the one for the results, if they are wanted.
    pub watch: Option<(String, Option<String>)>,
}

const KNOWN: &str = "socket, marked, executed, recorded, places, results";

impl Options {
    /// Reads them.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut socket, mut marked, mut executed, mut recorded) = (None, None, None, None);
        let (mut places, mut results) = (None, None);
        for argument in arguments {
            let (place, path) = match argument.split_once('=') {
                Some(("socket", path)) => (&mut socket, path),
                Some(("marked", path)) => (&mut marked, path),
                Some(("executed", path)) => (&mut executed, path),
                Some(("recorded", path)) => (&mut recorded, path),
                Some(("places", path)) => (&mut places, path),
                Some(("results", path)) => (&mut results, path),
                _ => {
                    return Err(format!("an argument is {KNOWN}=PATH, and not {argument}"));
                }
            };
            if path.is_empty() || place.replace(path.to_string()).is_some() {
                return Err(format!("{argument}: each is given once, with a path"));
            }
        }
        let watch = match (places, results) {
            (None, None) => None,
            (Some(places), results) => Some((places, results)),
            (None, Some(_)) => return Err("results=PATH takes places=PATH".into()),
        };
        if executed.is_some() && marked.is_none() {
            return Err("executed=PATH takes marked=PATH".into());
        }
        if recorded.is_some() && socket.is_none() {
            return Err("recorded=PATH takes socket=PATH".into());
        }
        if socket.is_none() && marked.is_none() && watch.is_none() {
            return Err(format!("none of {KNOWN}=PATH is given"));
        }
        Ok(Self { socket, marked, executed, recorded, watch })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, String> {
        Options::parse(&arguments.iter().map(|argument| argument.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_are_checked() {
        let socket = Some("run/counter".to_string());
        let watch = Some(("p".to_string(), Some("r".to_string())));
        let (none, marked) = (Options::default(), Some("m".to_string()));
        assert_eq!(parse(&["socket=run/counter"]), Ok(Options { socket: socket.clone(), ..none }));
        let none = Options::default();
        assert_eq!(parse(&["places=p", "results=r"]), Ok(Options { watch: watch.clone(), ..none }));
        let no_results = Some(("p".to_string(), None));
        assert_eq!(parse(&["places=p"]), Ok(Options { watch: no_results, ..Options::default() }));
        let all = ["results=r", "socket=run/counter", "marked=m", "places=p", "executed=e", "recorded=o"];
        let [executed, recorded] = ["e", "o"].map(|path| Some(path.to_string()));
        assert_eq!(parse(&all), Ok(Options { socket, marked, executed, recorded, watch }));
        for (bad, cause) in [
            (&[][..], "none of"),
            (&["socket="], "with a path"),
            (&["path=x"], "path=x"),
            (&["socket=a", "socket=b"], "once"),
            (&["socket=a", "results=r"], "takes places"),
            (&["socket=a", "executed=e"], "takes marked"),
            (&["marked=a", "recorded=e"], "takes socket"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(cause), "{bad:?}: {error}");
        }
    }
}
