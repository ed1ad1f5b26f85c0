package httpapi

import (
	"encoding/json"
	"errors"
	"reflect"
	"strconv"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
)

// value judges the value that begins at from, and if it is none of several ends before
// to, by the type that is due.
func (w *walker) value(from, to int) {
	if !w.whole || w.due == nil {
		return
	}
	if self := readsItself(w.due); self != nil {
		w.try(self, from, to)
		return
	}
	t := read(w.due)
	if t == nil {
		return
	}
	if issue := misfit(t, w.raw[from:to]); issue != "" {
		w.add("has the wrong type: "+issue, typeName(t))
	}
}

// try reads a value of a type that does so by itself. The members of the body are read
// so in any case: they are left to assign.
func (w *walker) try(t reflect.Type, from, to int) {
	if !w.whole || len(w.stack) < 2 {
		return
	}
	if err := json.Unmarshal(w.raw[from:to], reflect.New(t).Interface()); err != nil && len(w.details) <= decision.MaxDetails {
		w.details = append(w.details, valueDetail(w.field(), t, err))
	}
}

// valueDetail is what is wrong with the value of a field, which could not be read.
func valueDetail(field string, t reflect.Type, err error) decision.Detail {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return decision.Detail{Field: field, Issue: "is not valid", Expected: typeName(t)}
	}
	if e.Field != "" {
		field += "." + e.Field
	}
	return decision.Detail{Field: field, Issue: "has the wrong type: " + decision.Cut(e.Value, maxShown), Expected: typeName(e.Type)}
}

// maxShown bounds what is repeated of a value, in bytes.
const maxShown = 32

// rawMessage takes any value as it is.
var rawMessage = reflect.TypeFor[json.RawMessage]()

// readsItself returns the type behind t's pointers that reads JSON, or a string of it, by
// itself; nil: none does.
func readsItself(t reflect.Type) reflect.Type {
	for ; t != nil; t = t.Elem() {
		if p := reflect.PointerTo(t); p.Implements(reader) || p.Implements(textReader) {
			if t == rawMessage {
				return nil
			}
			return t
		}
		if t.Kind() != reflect.Pointer {
			return nil
		}
	}
	return nil
}

// isBytes reports whether a slice is written as base64.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// misfit returns what raw is where it cannot be read into a t, as encoding/json has it;
// empty: it can. Of an object or an array the first byte is enough.
func misfit(t reflect.Type, raw []byte) string {
	kind := jsonscan.Value{To: len(raw)}.Kind(raw)
	if kind == jsonscan.Null {
		return ""
	}
	fits, number := false, kind == jsonscan.Number
	switch t.Kind() {
	case reflect.String:
		fits = kind == jsonscan.String
		if t == reflect.TypeFor[json.Number]() {
			fits = json.Unmarshal(raw, new(json.Number)) == nil
		}
	case reflect.Bool:
		fits = kind == jsonscan.Bool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		_, err := strconv.ParseInt(short(raw), 10, t.Bits())
		fits = number && err == nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		_, err := strconv.ParseUint(short(raw), 10, t.Bits())
		fits = number && err == nil
	case reflect.Float32, reflect.Float64:
		_, err := strconv.ParseFloat(string(raw), t.Bits())
		fits = number && err == nil
	case reflect.Slice:
		fits = kind == jsonscan.Array
		if isBytes(t) && kind == jsonscan.String {
			fits = json.Unmarshal(raw, new([]byte)) == nil
		}
	case reflect.Array:
		fits = kind == jsonscan.Array
	case reflect.Struct, reflect.Map:
		fits = kind == jsonscan.Object
	default:
		fits = true
	}
	if fits {
		return ""
	}
	return describe(t, kind, raw)
}

// describe says what raw is, to whom a t was expected.
func describe(t reflect.Type, kind jsonscan.Kind, raw []byte) string {
	switch kind {
	case jsonscan.Object:
		return "object"
	case jsonscan.Array:
		return "array"
	case jsonscan.String:
		return "string"
	case jsonscan.Bool:
		return "bool"
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 {
		return "number " + decision.Cut(string(raw[:min(len(raw), maxShown+4)]), maxShown)
	}
	return "number"
}

// short is a number that an integer may be, or nothing.
func short(raw []byte) string {
	if len(raw) > maxShown {
		return ""
	}
	return string(raw)
}
