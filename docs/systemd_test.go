package docs

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The units and files of settings on the page of systemd name settings and processes that
// there are.
func TestUnits(t *testing.T) {
	t.Parallel()
	texts := map[string]string{}
	for _, name := range []string{"systemd", "settings", "cli"} {
		b, err := os.ReadFile(name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	boxes := regexp.MustCompile("(?ms)^```ini\n# (\\S+?),?[ \n](.*?)^```").FindAllStringSubmatch(texts["systemd"], -1)
	setting, starts := regexp.MustCompile(`(?m)^(SLUICE_\w+)=`), regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/(sluice \w+)$`)
	var units, files []string
	for _, box := range boxes {
		file, text := box[1], box[2]
		for _, m := range setting.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(texts["settings"], "| `"+m[1]+"` |") {
				t.Errorf("%s: there is no setting %s", file, m[1])
			}
		}
		if !strings.HasSuffix(file, ".service") {
			files = append(files, file)
			continue
		}
		units = append(units, file)
		if m := starts.FindStringSubmatch(text); m == nil || !strings.Contains(texts["cli"], "### "+m[1]+"\n") {
			t.Errorf("%s starts %q", file, m)
		}
		if m := regexp.MustCompile(`(?m)^EnvironmentFile=(.*)$`).FindStringSubmatch(text); m == nil || !slices.Contains(files, m[1]) {
			t.Errorf("%s reads %q, which the page does not have", file, m)
		}
	}
	if len(units) != 3 || len(files) != 3 {
		t.Errorf("%q, %q", units, files)
	}
}
