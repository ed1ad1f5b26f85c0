package authorize

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestCredentialsAmongProtocols(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][2]string{
		"":                                    {"", ""},
		"chat, superchat":                     {"", "chat, superchat"},
		"sluice.bearer.slk_1":                 {"slk_1", ""},
		"chat,sluice.bearer.slk_1":            {"slk_1", "chat"},
		"sluice.bearer.slk_1 ,\tchat":         {"slk_1", "chat"},
		"sluice.bearer.a, b, sluice.bearer.c": {"a", "b"},
		"sluice.bearer.":                      {"", ""},
		"not-sluice.bearer.a, b":              {"", "not-sluice.bearer.a, b"},
		strings.Repeat("a", 9000):             {"", ""},
	} {
		if credential, rest := CutBearer(header); credential != want[0] || rest != want[1] {
			t.Errorf("%.40q: %q and %q, want %q", header, credential, rest, want)
		}
	}
}

func FuzzCutBearer(f *testing.F) {
	f.Add("chat, sluice.bearer.slk_1")
	f.Add(strings.Repeat(",", 8000) + BearerProtocol)
	f.Fuzz(func(t *testing.T, header string) {
		growth.Linear(t, len(header), 64, 4<<10, func() { CutBearer(header) })
		if _, rest := CutBearer(header); len(rest) > 2*len(header) {
			t.Errorf("%d bytes of %d", len(rest), len(header))
		}
		_, rest := CutBearer(header)
		for name := range strings.SplitSeq(rest, ",") {
			if strings.HasPrefix(strings.Trim(name, " \t"), BearerProtocol) {
				t.Fatalf("%q is left", rest)
			}
		}
	})
}
