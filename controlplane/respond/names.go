package respond

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"sluice.dev/sluice/filters/decision"
)

// checkNames walks raw once and reports what encoding/json lets through: a name
// that stands twice in one object, nesting beyond maxDepth, and anything after
// the first value. Two readers of such a body may see two different requests.
func checkNames(raw []byte) []decision.Detail {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	w := walker{dec: dec}
	if err := w.value("", 0); err != nil {
		return []decision.Detail{{Field: "body", Issue: "is not valid JSON", Expected: "object"}}
	}
	if _, err := dec.Token(); err != io.EOF {
		w.details = append(w.details, decision.Detail{Field: "body", Issue: "has more after the first JSON value"})
	}
	return w.details
}

type walker struct {
	dec     *json.Decoder
	details []decision.Detail
}

func (w *walker) value(path string, depth int) error {
	tok, err := w.dec.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth >= maxDepth {
		return errTooDeep
	}
	if delim == '[' {
		for w.dec.More() {
			if err := w.value(path+"[]", depth+1); err != nil {
				return err
			}
		}
	} else if err := w.object(path, depth); err != nil {
		return err
	}
	_, err = w.dec.Token()
	return err
}

func (w *walker) object(path string, depth int) error {
	seen := map[string]bool{}
	for w.dec.More() {
		tok, err := w.dec.Token()
		if err != nil {
			return err
		}
		name := tok.(string)
		full := name
		if path != "" {
			full = path + "." + name
		}
		if seen[name] {
			w.details = append(w.details, decision.Detail{Field: full, Issue: "is given twice"})
		}
		seen[name] = true
		if err := w.value(full, depth+1); err != nil {
			return err
		}
	}
	return nil
}

type depthError struct{}

func (depthError) Error() string { return "nested too deeply" }

var errTooDeep = depthError{}

func sortedKeys(m map[string]json.RawMessage) []string {
	return slices.Sorted(maps.Keys(m))
}
