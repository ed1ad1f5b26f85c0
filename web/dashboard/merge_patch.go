package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"sluice.dev/sluice/workers/schedules/definition"
)

// patchBetween is the change, as the API reads it, that makes one definition of another:
// a JSON merge patch (RFC 7396), in which null stands for what is no longer there.
func patchBetween(from, to definition.Definition) (definition.Patch, error) {
	a, err := members(from)
	if err != nil {
		return definition.Patch{}, err
	}
	b, err := members(to)
	if err != nil {
		return definition.Patch{}, err
	}
	return patchOf(mergePatch(a, b))
}

// members is a value as JSON has it, with numbers as they are written.
func members(v any) (m map[string]any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("write a schedule: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("read a schedule: %w", err)
	}
	return m, nil
}

// mergePatch makes b of a. It takes time linear in both.
func mergePatch(a, b map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range a {
		if _, ok := b[name]; !ok {
			patch[name] = nil
		}
	}
	for name, to := range b {
		from, ok := a[name]
		x, isObject := from.(map[string]any)
		y, both := to.(map[string]any)
		switch {
		case isObject && both:
			if inner := mergePatch(x, y); len(inner) > 0 {
				patch[name] = inner
			}
		case !ok || !reflect.DeepEqual(from, to):
			patch[name] = to
		}
	}
	return patch
}
