package webpage

import (
	"net/http"
	"strings"
)

// Wanted reports whether r asks for a page, where there is a page and JSON: browsers
// name text/html in Accept (RFC 9110 section 12.5.1), and programs name JSON, anything,
// or nothing. A request that names both gets what it prefers, JSON if neither;
// ?format=json asks for that whatever the header says. It takes time linear in the header.
func Wanted(r *http.Request) bool {
	return r.URL.Query().Get("format") != "json" && prefersHTML(strings.Join(r.Header.Values("Accept"), ","))
}

func prefersHTML(accept string) bool {
	html, data := 0, 0
	for one := range strings.SplitSeq(accept, ",") {
		media, parameters, _ := strings.Cut(one, ";")
		switch media = strings.TrimSpace(media); {
		case strings.EqualFold(media, "text/html"), strings.EqualFold(media, "application/xhtml+xml"):
			html = max(html, weight(parameters))
		case strings.EqualFold(media, "application/json"):
			data = max(data, weight(parameters))
		}
	}
	return html > data
}

// weight is q among the parameters of a media range, in thousandths; 1000 when there is
// none below that.
func weight(parameters string) int {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if decimals, ok := strings.CutPrefix(value, "0"); ok && strings.EqualFold(name, "q") {
			return thousandths(strings.TrimPrefix(decimals, "."))
		}
	}
	return 1000
}

// thousandths is what up to three decimals say; 0 for anything else.
func thousandths(decimals string) (n int) {
	unit := 100
	for _, c := range []byte(decimals) {
		if c < '0' || c > '9' || unit == 0 {
			return 0
		}
		n, unit = n+int(c-'0')*unit, unit/10
	}
	return n
}
