package compile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sluice.dev/sluice/platform/limits/growth"
)

// oracle is a validator that walks values as a tree, for comparison.
func oracle(text []byte) (*jsonschema.Schema, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseRegexpEngine(func(e string) (jsonschema.Regexp, error) {
		text, err := translate(e)
		if err != nil {
			return nil, err
		}
		return regexp.Compile(text)
	})
	if err := c.AddResource("s.json", v); err != nil {
		return nil, err
	}
	return c.Compile("s.json")
}

// twice reports whether an object has two members of one name, which the oracle
// does not see.
func twice(d *json.Decoder) bool {
	t, err := d.Token()
	if err != nil {
		return false
	}
	found, names := false, map[any]bool{}
	for open, ok := t.(json.Delim); ok && d.More(); {
		if open == '{' {
			name, _ := d.Token()
			found = found || names[name]
			names[name] = true
		}
		found = twice(d) || found
	}
	if _, ok := t.(json.Delim); ok {
		_, _ = d.Token()
	}
	return found
}

// agree holds a value against a schema both ways.
func agree(t *testing.T, text, value []byte) (compared bool) {
	t.Helper()
	valid, faults := judge(t, string(text), nil)
	if faults != nil {
		return false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil || twice(json.NewDecoder(bytes.NewReader(value))) {
		if valid(value) {
			t.Errorf("%s: %s is let through: %v", text, value, err)
		}
		return true
	}
	s, err := oracle(text)
	if err != nil {
		return false
	}
	if want := s.Validate(v) == nil; valid(value) != want {
		t.Errorf("schema %s\nvalue %s\nis valid: %v", text, value, want)
	}
	return true
}

var oracleNames = []string{"a", "b", "ab", "é"}

// randomValue makes a value of a few names and numbers, so that schemas and values
// meet.
func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return json.Number([]string{"0", "1", "1.0", "2", "2.5", "-1", "1e1", "10", "3.0e0", "9007199254740993"}[r.IntN(10)])
	case n == 3 || depth == 0:
		return []string{"", "a", "ab", "b1", "é", "aaaa", "\u2028"}[r.IntN(7)]
	case n < 6:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	default:
		m := map[string]any{}
		for range r.IntN(4) {
			m[oracleNames[r.IntN(len(oracleNames))]] = randomValue(r, depth-1)
		}
		return m
	}
}

// randomSchema makes a schema of keywords that values of randomValue meet.
func randomSchema(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(12) == 0 {
		return r.IntN(4) > 0
	}
	below := func() any { return randomSchema(r, depth-1) }
	several := func() any {
		list := make([]any, 1+r.IntN(3))
		for i := range list {
			list[i] = below()
		}
		return list
	}
	dictionary := func(of func() any) any {
		m := map[string]any{}
		for range r.IntN(4) {
			m[oracleNames[r.IntN(len(oracleNames))]] = of()
		}
		return m
	}
	name := func() any { return []any{oracleNames[r.IntN(len(oracleNames))]} }
	count := func() any { return r.IntN(4) }
	number := func() any { return json.Number([]string{"0", "1", "2", "2.5", "10", "0.5"}[r.IntN(6)]) }
	makers := map[string]func() any{
		"type": func() any {
			return []any{"null", "boolean", "object", "array", "number", "string", "integer"}[r.IntN(7)]
		},
		"enum":  func() any { return []any{randomValue(r, 2), randomValue(r, 1)} },
		"const": func() any { return randomValue(r, 2) }, "minimum": number, "maximum": number, "exclusiveMinimum": number, "exclusiveMaximum": number,
		"multipleOf": func() any { return json.Number([]string{"1", "2", "0.5", "3"}[r.IntN(4)]) },
		"minLength":  count, "maxLength": count, "pattern": func() any { return []string{"^a", "b$", "^a+$", "[0-9]", "^.$", "a|é"}[r.IntN(6)] },
		"minItems": count, "maxItems": count, "uniqueItems": func() any { return true }, "items": below, "prefixItems": several, "contains": below,
		"minContains": count, "maxContains": count, "minProperties": count, "maxProperties": count, "properties": func() any { return dictionary(below) },
		"patternProperties": func() any { return map[string]any{"^a": below(), "b": below()} }, "additionalProperties": below, "propertyNames": below,
		"required": name, "dependentRequired": func() any { return dictionary(name) }, "dependentSchemas": func() any { return dictionary(below) },
		"allOf": several, "anyOf": several, "oneOf": several, "not": below, "if": below, "then": below, "else": below,
		"$ref": func() any { return []string{"#/$defs/x", "#"}[r.IntN(2)] },
	}
	s := map[string]any{}
	all := Supported()
	for range 1 + r.IntN(4) {
		k := all[r.IntN(len(all))]
		if m := makers[k]; m != nil {
			s[k] = m()
		}
	}
	return s
}

// Tables and the oracle agree on random schemas of every keyword.
func TestAgreesWithTheOracle(t *testing.T) {
	t.Parallel()
	compared := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, ok := randomSchema(r, 3).(map[string]any)
		if !ok {
			continue
		}
		s["$defs"] = map[string]any{"x": randomSchema(r, 2)}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			value, err := json.Marshal(randomValue(r, 3))
			if err != nil {
				t.Fatal(err)
			}
			if agree(t, text, value) {
				compared++
			}
		}
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
	if compared < 6_000 {
		t.Errorf("only %d were compared", compared)
	}
}

// slow is what takes the oracle long: powers of ten that it writes out, and
// patterns that repeat repetitions.
var slow = regexp.MustCompile(`[eE][+-]?\d{3}|\{\d*,?\d{2,}\}|format`)

// Tables and the oracle agree on whatever schema and value there are.
func FuzzTable(f *testing.F) {
	files, err := filepath.Glob("testdata/suite/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var groups []group
		if err := json.Unmarshal(b, &groups); err != nil {
			f.Fatal(err)
		}
		for _, g := range groups {
			for _, c := range g.Tests[:min(2, len(g.Tests))] {
				f.Add([]byte(g.Schema), []byte(c.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text, value []byte) {
		if len(text) > 4096 || len(value) > 4096 || slow.Match(text) || slow.Match(value) || !json.Valid(text) || twice(json.NewDecoder(bytes.NewReader(text))) ||
			strings.Contains(string(text), `\u`) || strings.Contains(string(value), `\ud`) {
			return
		}
		growth.Linear(t, len(text), 4096, 24<<20, func() { _, _ = judge(t, string(text), nil) })
		agree(t, text, value)
	})
}

// What a pattern finds is what Go's own engine finds.
func FuzzPattern(f *testing.F) {
	for _, e := range []string{"^a+$", "[^a-z]", `\d{2,4}-\w`, "(a|b)*c$", `\p{L}`, `[\s\S]`, "^$", "a.c", "(?:x|^y)z?", `^(a|)+b`, `é|\u00e8`} {
		f.Add(e, "abc 12-é\u2028")
	}
	f.Fuzz(func(t *testing.T, e, text string) {
		a, err := automatonOf(e)
		if err != nil || len(text) > 4096 {
			return
		}
		translated, err := translate(e)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(translated).MatchString(text)
		s, err := json.Marshal(map[string]any{"pattern": e})
		if err != nil {
			t.Fatal(err)
		}
		valid, faults := judge(t, string(s), nil)
		if faults != nil {
			t.Fatal(faults)
		}
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if valid(value) != want {
			t.Fatal(fmt.Sprintf("%q in %s: %v", e, value, want), len(a.flags))
		}
	})
}
