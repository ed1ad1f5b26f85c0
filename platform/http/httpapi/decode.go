package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
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
	return OfBody(Unmarshal(raw, v), raw)
}

// OfBody says of an error, which raw could not be read for, that raw is the body of the
// request: the Adapter then answers with what else is wrong with it, if it is an object.
func OfBody(err error, raw []byte) error {
	if e, ok := errors.AsType[*apierror.Error](err); ok && jsonscan.Validate(raw, maxDepth) == nil && jsonscan.Root(raw).Kind(raw) == jsonscan.Object {
		e.Body = raw
	}
	return err
}

// ReadJSON reads a JSON body of at most limit bytes (0: DefaultBodyLimit).
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if limit == 0 {
		limit = DefaultBodyLimit
	}
	if ct := r.Header.Get("Content-Type"); ct != "" {
		mt, _, err := mime.ParseMediaType(ct)
		if err != nil || (mt != "application/json" && !strings.HasSuffix(mt, "+json")) {
			return nil, &apierror.Error{Code: decision.MediaType, Message: "The request body must be JSON: send it with Content-Type: application/json.",
				Details: []decision.Detail{{Field: "Content-Type", Issue: "is " + decision.Cut(ct, decision.MaxName), Expected: "application/json"}}}
		}
	}
	return ReadBody(w, r, limit)
}

// Plain fails with unsupported_media_type when r's body is compressed, or encoded in
// another way: bodies are read as they come, so that none becomes larger than its limit.
func Plain(r *http.Request) error {
	encoding := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return nil
	}
	return &apierror.Error{Code: decision.MediaType, Message: "The request body is encoded as " + decision.Cut(encoding, decision.MaxName) + ": send it as it is, without Content-Encoding.",
		Details: []decision.Detail{decision.EncodedBody(encoding)}}
}

// ReadBody reads a body of at most limit bytes, whatever its type. It fails with
// unsupported_media_type as Plain does, with request_too_large, or with invalid_request
// when the body breaks off.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := Plain(r); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &apierror.Error{Code: decision.TooLarge, Details: []decision.Detail{decision.LargeBody(uint64(limit))}, Message: fmt.Sprintf("The request body is larger than %d bytes.", limit)}
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
	details = bounded(assign(raw, root, into, details))
	if f, ok := v.(Faulty); ok {
		f.SetFaults(details)
		return nil
	}
	return apierror.Invalid(details)
}

// Faulty is a body that is handed on with its faults, so that whoever checks its values
// answers with all that is wrong, and never with less: it fails whenever there are some.
// It is for bodies whose values only their handler can judge.
type Faulty interface{ SetFaults(list []decision.Detail) }

// assign sets each field by itself, so that one bad value does not hide the next. It adds
// to details what no walk could see, such as a name that a map's keys cannot be.
func assign(raw []byte, root jsonscan.Value, into reflect.Value, details []decision.Detail) []decision.Detail {
	fields := shapeOf(into.Type()).fields
	known := len(details)
	for m := jsonscan.Members(raw, root); m.Step() && len(details) <= decision.MaxDetails; {
		name := jsonscan.Append(nil, m.Name)
		f, ok := fields[string(name)]
		if !ok {
			continue // check has said so
		}
		err := json.Unmarshal(raw[m.From:m.To], into.FieldByIndex(f.index).Addr().Interface())
		if err != nil && !slices.ContainsFunc(details[:known], func(d decision.Detail) bool { return inside(d.Field, string(name)) }) {
			details = append(details, valueDetail(string(name), f.typ, err))
		}
	}
	return details
}

func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		if t == reflect.TypeFor[json.Number]() {
			return "number"
		}
		return "string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float64, reflect.Float32:
		return "number"
	case reflect.Slice, reflect.Array:
		if isBytes(t) {
			return "base64"
		}
		return "array of " + typeName(t.Elem())
	case reflect.Struct:
		switch {
		case t.PkgPath() == "time":
			return "ISO 8601 timestamp"
		case reflect.PointerTo(t).Implements(textReader):
			return "string"
		}
		return "object"
	case reflect.Map:
		return "object"
	default:
		return fmt.Sprint(t.Kind())
	}
}
