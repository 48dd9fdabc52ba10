//! Status codes (RFC 9110, 15) that this server sends.

macro_rules! statuses {
    ($($number:literal $name:ident $text:literal)*) => {
        /// A status code.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Status { $(#[doc = $text] $name = $number,)* }

        impl Status {
            /// Number and reason, as the status line has them.
            pub const fn line(self) -> &'static str {
                match self { $(Self::$name => concat!($number, " ", $text),)* }
            }
        }
    };
}

statuses! {
    200 Ok "OK"
    206 PartialContent "Partial Content"
    304 NotModified "Not Modified"
    400 BadRequest "Bad Request"
    404 NotFound "Not Found"
    405 MethodNotAllowed "Method Not Allowed"
    408 RequestTimeout "Request Timeout"
    412 PreconditionFailed "Precondition Failed"
    413 ContentTooLarge "Content Too Large"
    414 UriTooLong "URI Too Long"
    416 RangeNotSatisfiable "Range Not Satisfiable"
    431 HeadersTooLarge "Request Header Fields Too Large"
    500 InternalError "Internal Server Error"
    501 NotImplemented "Not Implemented"
    503 Unavailable "Service Unavailable"
    505 VersionNotSupported "HTTP Version Not Supported"
}
