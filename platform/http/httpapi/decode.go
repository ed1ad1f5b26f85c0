package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// DefaultBodyLimit bounds a JSON body of ours, in bytes.
const DefaultBodyLimit = 1 << 20

// Decode reads r's body as one JSON object into the struct that v points to.
//
// It fails with unsupported_media_type when the content type is given and is
// not JSON, with request_too_large above limit bytes (0: DefaultBodyLimit), and
// with invalid_request when the body is not one JSON object, holds a name twice or
// text that is no UTF-8, is nested too deeply, has fields that v does not have, or
// values of the wrong type: every such field at once, decision.MaxDetails at most.
// It costs what Unmarshal does, and twice the body for reading it.
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
			return nil, &apierror.Error{Code: decision.MediaType}
		}
	}
	return ReadBody(w, r, limit)
}

// ReadBody reads a body of at most limit bytes, whatever its type. It fails with
// request_too_large, or invalid_request when the body breaks off.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, apierror.Errorf(decision.TooLarge, "The request body is larger than %d bytes.", limit)
	}
	if err != nil {
		return nil, &apierror.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
	}
	return raw, nil
}

// Unmarshal is Decode for bytes already read. It takes time linear in raw, as
// CheckJSON does, and the memory of CheckJSON and of encoding/json for v.
func Unmarshal(raw []byte, v any) error {
	into := reflect.ValueOf(v).Elem()
	details, valid := check(raw, into.Type())
	if !valid {
		return apierror.Invalid(bounded(details))
	}
	root := jsonscan.Root(raw)
	if root.Kind(raw) != jsonscan.Object {
		return &apierror.Error{Code: decision.InvalidRequest, Message: "The request body is not a JSON object.",
			Details: []decision.Detail{{Field: "body", Issue: "is not a JSON object", Expected: "object"}}}
	}
	return apierror.Invalid(bounded(assign(raw, root, into, details)))
}

// assign sets each field by itself, so that one bad value does not hide the next.
// It adds to details.
func assign(raw []byte, root jsonscan.Value, into reflect.Value, details []decision.Detail) []decision.Detail {
	fields := shapeOf(into.Type()).fields
	for m := jsonscan.Members(raw, root); m.Step() && len(details) <= decision.MaxDetails; {
		name := jsonscan.Append(nil, m.Name)
		f, ok := fields[string(name)]
		if !ok {
			continue // check has said so
		}
		if err := json.Unmarshal(raw[m.From:m.To], into.FieldByIndex(f.index).Addr().Interface()); err != nil {
			details = append(details, valueDetail(string(name), f.typ, err))
		}
	}
	return details
}

func valueDetail(name string, t reflect.Type, err error) decision.Detail {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field != "" {
			name += "." + e.Field
		}
		return decision.Detail{Field: name, Issue: "has the wrong type: " + e.Value, Expected: typeName(e.Type)}
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
