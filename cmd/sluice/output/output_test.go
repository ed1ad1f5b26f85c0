package output_test

import (
	"bytes"
	"testing"
	"time"

	"sluice.dev/sluice/cmd/sluice/output"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const page = `{"data":[
 {"id":"key_1","name":"ci\u001b[31m","scopes":["streams:read","streams:write","clips:read","clips:write"],
  "limit":20000000,"created_at":"2026-03-01T11:56:59.123456Z","expires_at":"2026-05-30T12:00:00Z","up":[{"address":"${api}","weight":2}]},
 {"id":"key_2","name":"a name that is so long that nobody would read all of it","scopes":[],"limit":null,"created_at":"2026-03-01T12:00:00Z"}]}`

func TestLists(t *testing.T) {
	t.Parallel()
	fields, wide := output.Fields("id", "name", "scopes", "limit=none", "created_at"), output.Fields("expires_at", "up")
	for name, c := range map[string]struct {
		p    output.Printer
		want string
	}{
		"on a terminal": {output.Printer{Terminal: true}, "" +
			"ID     NAME                                          SCOPES                         LIMIT     CREATED_AT\n" +
			"key_1  ci [31m                                       streams:read,streams:write +2  20000000  3m ago\n" +
			"key_2  a name that is so long that nobody would re…  -                              none      now\n"},
		"in a file": {output.Printer{}, "" +
			"ID     NAME                                                     SCOPES                                            LIMIT     CREATED_AT\n" +
			"key_1  ci [31m                                                  streams:read,streams:write,clips:read,clips:write  20000000  2026-03-01T11:56:59Z\n" +
			"key_2  a name that is so long that nobody would read all of it                                                    none      2026-03-01T12:00:00Z\n"},
		"only ids": {output.Printer{Quiet: true, Terminal: true, Format: "json"}, "key_1\nkey_2\n"},
	} {
		var out bytes.Buffer
		c.p.Out, c.p.Now = &out, now
		if err := c.p.List([]byte(page), fields, wide); err != nil || squeezed(out.String()) != squeezed(c.want) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
	}
	var out bytes.Buffer
	p := output.Printer{Out: &out, Now: now, Terminal: true, Format: "wide"}
	if err := p.List([]byte(page), fields, wide); err != nil || !bytes.Contains(out.Bytes(), []byte("2026-05-30T12:00:00Z  address=${api} weight=2")) {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// squeezed leaves the width of columns out.
func squeezed(s string) string {
	var b []byte
	for i := range len(s) {
		if s[i] != ' ' || len(b) > 0 && b[len(b)-1] != ' ' {
			b = append(b, s[i])
		}
	}
	return string(b)
}

func TestDocuments(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"json": "{\n  \"b\": 1,\n  \"a\": [\n    \"x\"\n  ]\n}\n",
		"yaml": "b: 1\na:\n  - x\n",
		"text": "a  x\nb  1\n",
	} {
		var out bytes.Buffer
		if err := (output.Printer{Out: &out, Format: format}).Object([]byte(`{"b":1,"a":["x"]}`), output.Fields("a", "b")); err != nil || out.String() != want {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
}

func TestRelativeTimes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "now", -90 * time.Second: "90s ago", -119 * time.Minute: "119m ago", -3 * time.Hour: "3h ago", -72 * time.Hour: "3d ago", -20000 * time.Hour: "2y ago",
		90 * 24 * time.Hour: "in 90d", 5 * time.Second: "in 5s",
	} {
		if got := output.Relative(now.Add(d), now); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
