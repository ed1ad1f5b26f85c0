package compile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/schema"
)

// group is one schema of the suite, with what it must find of values.
type group struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// judge holds values against a schema, as bodies.
func judge(t testing.TB, text string, named Schemas) (func(value []byte) bool, []Fault) {
	t.Helper()
	b, faults := Table(Request{Body: &Body{Required: true, Contents: []Content{{At: "schema", Type: "application/json", Schema: text}}}}, named)
	if faults != nil {
		return nil, faults
	}
	table := schema.Parse(b)
	if table == nil {
		t.Fatal("the table cannot be read")
	}
	c := new(schema.Checker)
	return func(value []byte) bool {
		c.Start(table)
		c.JSON(c.Body("application/json").Node, value)
		return len(c.Details()) == 0
	}, nil
}

// Every case of the suite is as it says, but for those of schemas that are refused.
// Each of those stands in the list, and each of the list is refused.
func TestSuite(t *testing.T) {
	t.Parallel()
	refused, other := map[string]bool{}, map[string]bool{}
	files, cases := 0, 0
	err := filepath.WalkDir("testdata/suite", func(path string, d os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".json" {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var groups []group
		if err := json.Unmarshal(b, &groups); err != nil {
			return err
		}
		name, _ := strings.CutPrefix(path, "testdata/suite/")
		for _, g := range groups {
			at := name + ": " + g.Description
			text := string(g.Schema)
			valid, faults := judge(t, text, nil)
			if faults != nil {
				named := strings.Split(why[at], " ")[0]
				if refused[at] = true; named == "" || !strings.Contains(fmt.Sprint(faults), named) && named != "$schema" {
					t.Errorf("%s: refused: %v", at, faults)
				}
				continue
			}
			for _, c := range g.Tests {
				cases++
				if valid(c.Data) != c.Valid {
					if other[at+": "+c.Description] = true; differs[at+": "+c.Description] == "" {
						t.Errorf("%s: %s: %s is valid: %v", at, c.Description, c.Data, !c.Valid)
					}
				}
			}
		}
		return nil
	})
	if err != nil || files < 50 || cases < 1000 {
		t.Fatal(err, files, cases)
	}
	for at := range why {
		if !refused[at] {
			t.Errorf("%s: is in the list, and not refused", at)
		}
	}
	for at := range differs {
		if !other[at] {
			t.Errorf("%s: is in the list, and as the suite says", at)
		}
	}
	t.Logf("%d cases; %d schemas refused; %d cases differ", cases, len(refused), len(other))
}
