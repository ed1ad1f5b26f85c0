package respond

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/filters/decision"
)

// DefaultBodyLimit bounds a JSON body of ours, in bytes.
const DefaultBodyLimit = 1 << 20

// maxDepth bounds the nesting of a JSON body.
const maxDepth = 64

// Decode reads r's body as one JSON object into the struct that v points to.
//
// It fails with unsupported_media_type when the content type is given and is
// not JSON, with request_too_large above limit bytes (0: DefaultBodyLimit), and
// with invalid_request when the body is not one JSON object, holds a name twice,
// is nested too deeply, has fields that v does not have, or values of the wrong
// type: every such field at once.
func Decode(w http.ResponseWriter, r *http.Request, limit int64, v any) error {
	raw, err := ReadJSON(w, r, limit)
	if err != nil {
		return err
	}
	return Unmarshal(raw, v)
}

// ReadJSON reads a JSON body of at most limit bytes (0: DefaultBodyLimit).
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if limit == 0 {
		limit = DefaultBodyLimit
	}
	if ct := r.Header.Get("Content-Type"); ct != "" {
		mt, _, err := mime.ParseMediaType(ct)
		if err != nil || (mt != "application/json" && !strings.HasSuffix(mt, "+json")) {
			return nil, &controlplane.Error{Code: decision.MediaType}
		}
	}
	return ReadBody(w, r, limit)
}

// ReadBody reads a body of at most limit bytes, whatever its type. It fails with
// request_too_large, or invalid_request when the body breaks off.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, controlplane.Errorf(decision.TooLarge, "The request body is larger than %d bytes.", limit)
	}
	if err != nil {
		return nil, &controlplane.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
	}
	return raw, nil
}

// Unmarshal is Decode for bytes already read.
func Unmarshal(raw []byte, v any) error {
	details := checkNames(raw)
	if len(details) > 0 {
		return controlplane.Invalid(details)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return &controlplane.Error{Code: decision.InvalidRequest, Message: "The request body is not a JSON object.",
			Details: []decision.Detail{{Field: "body", Issue: "is not a JSON object", Expected: "object"}}}
	}
	return controlplane.Invalid(assign(fields, reflect.ValueOf(v).Elem()))
}

// assign sets each field by itself, so that one bad value does not hide the next.
func assign(fields map[string]json.RawMessage, dst reflect.Value) []decision.Detail {
	var details []decision.Detail
	targets := fieldsByName(dst)
	for _, name := range sortedKeys(fields) {
		f, ok := targets[name]
		if !ok {
			details = append(details, decision.Detail{Field: name, Issue: "is not a known field"})
			continue
		}
		dec := json.NewDecoder(bytes.NewReader(fields[name]))
		dec.DisallowUnknownFields()
		if err := dec.Decode(f.Addr().Interface()); err != nil {
			details = append(details, valueDetail(name, f.Type(), err))
		}
	}
	return details
}

func fieldsByName(dst reflect.Value) map[string]reflect.Value {
	m := map[string]reflect.Value{}
	for i := range dst.NumField() {
		f := dst.Type().Field(i)
		if f.Anonymous {
			for k, v := range fieldsByName(dst.Field(i)) {
				m[k] = v
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "-" && name != "" {
			m[name] = dst.Field(i)
		}
	}
	return m
}

func valueDetail(name string, t reflect.Type, err error) decision.Detail {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field != "" {
			name += "." + e.Field
		}
		return decision.Detail{Field: name, Issue: "has the wrong type: " + e.Value, Expected: typeName(e.Type)}
	}
	if s, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return decision.Detail{Field: name + "." + strings.Trim(s, `"`), Issue: "is not a known field"}
	}
	return decision.Detail{Field: name, Issue: "is not valid", Expected: typeName(t)}
}

func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float64, reflect.Float32:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array of " + typeName(t.Elem())
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return "ISO 8601 timestamp"
		}
		return "object"
	case reflect.Map:
		return "object"
	default:
		return fmt.Sprint(t.Kind())
	}
}
