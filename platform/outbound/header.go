package outbound

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ownHeaders are those that belong to the connection or to this client, and
// that customers must not set.
var ownHeaders = []string{
	"Connection", "Content-Length", "Expect", "Host", "Http2-Settings", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// CheckHeader reports whether a customer's header can be sent as it is; the
// error is a *Refusal. Names that begin with "X-Sluice-" are ours: they carry
// identity inside the platform.
//
// It takes time linear in both, and no memory.
func CheckHeader(name, value string) error {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return &Refusal{"has a name that is not valid in HTTP", "letters, digits and -"}
	case !httpguts.ValidHeaderFieldValue(value):
		return &Refusal{"has a value with characters that HTTP does not allow", "no line breaks or control characters"}
	case slices.Contains(ownHeaders, canonical), strings.HasPrefix(canonical, "X-Sluice-"):
		return &Refusal{"is set by the service itself", ""}
	}
	return nil
}
