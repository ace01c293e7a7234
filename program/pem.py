"""Which certificate of a file OpenSSL serves."""

import re
from typing import Final

# The first by any of the names that OpenSSL takes, in lines of their own, as it wants them; its second group is what is
# in it. OpenSSL skips the mark of UTF-8 before the first line that it looks at, also behind a block.
SERVED: Final = re.compile(
    rb"^(?:(?:\A|(?<=-----\n)|(?<=-----\r\n))\xef\xbb\xbf)?"
    rb"-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----[^\S\n]*+\n([^-]*+)-----END \1-----",
    re.MULTILINE,
)
