package voice

import (
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func FuzzParse(f *testing.F) {
	f.Add("application/json", `{"text": "Hello", "voice": "joe", "speed": 1.5, "language": "en-US", "format": "opus"}`, "")
	f.Add("text/plain", "Hello", "speed=2&voice=joe&language=en&format=mp3")
	f.Add("", "\xff", "speed=NaN")
	f.Fuzz(func(t *testing.T, kind, body, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		var o Order
		growth.Linear(t, len(kind)+len(body)+len(query), 40, 64<<10, func() { o, err = Parse(kind, []byte(body), q) })
		if err == nil && (strings.TrimSpace(o.Text) == "" || !(o.Speed >= MinSpeed && o.Speed <= MaxSpeed) || types[o.Format] == "") {
			t.Errorf("%+v", o)
		}
		if s := spoken(o.Text); err == nil && (!strings.HasPrefix(s, " ") || strings.ContainsAny(s, "\n\r\t\x00")) {
			t.Errorf("%q", s)
		}
	})
}
