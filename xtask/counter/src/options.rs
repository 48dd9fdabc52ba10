//! What the plugin is told: `socket=PATH`, `marked=PATH`, `places=PATH` and `results=PATH`.

/// The arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where a socket is made, at which the count can be asked for.
    pub socket: Option<String>,
    /// The file for what is counted between marks.
    pub marked: Option<String>,
    /// The file that tells where a lock is taken and given back, and the one for the results.
    pub watch: Option<(String, String)>,
}

const KNOWN: &str = "socket, marked, places, results";

impl Options {
    /// Reads them.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let (mut socket, mut marked, mut places, mut results) = (None, None, None, None);
        for argument in arguments {
            let (place, path) = match argument.split_once('=') {
                Some(("socket", path)) => (&mut socket, path),
                Some(("marked", path)) => (&mut marked, path),
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
            (Some(places), Some(results)) => Some((places, results)),
            _ => return Err("places=PATH and results=PATH belong together".into()),
        };
        if socket.is_none() && marked.is_none() && watch.is_none() {
            return Err(format!("none of {KNOWN}=PATH is given"));
        }
        Ok(Self { socket, marked, watch })
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
        let watch = Some(("p".to_string(), "r".to_string()));
        let (none, marked) = (Options::default(), Some("m".to_string()));
        assert_eq!(parse(&["socket=run/counter"]), Ok(Options { socket: socket.clone(), ..none }));
        let none = Options::default();
        assert_eq!(parse(&["places=p", "results=r"]), Ok(Options { watch: watch.clone(), ..none }));
        let all = ["results=r", "socket=run/counter", "marked=m", "places=p"];
        assert_eq!(parse(&all), Ok(Options { socket, marked, watch }));
        for (bad, cause) in [
            (&[][..], "none of"),
            (&["socket="], "with a path"),
            (&["path=x"], "path=x"),
            (&["socket=a", "socket=b"], "once"),
            (&["places=p"], "belong together"),
            (&["socket=a", "results=r"], "belong together"),
        ] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(cause), "{bad:?}: {error}");
        }
    }
}
