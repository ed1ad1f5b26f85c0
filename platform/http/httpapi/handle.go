package httpapi

import "net/http"

// None stands for no body, of a request or of an answer.
type None struct{}

// Limited is a body that may not be larger than BodyLimit bytes; others may have
// DefaultBodyLimit.
type Limited interface{ BodyLimit() int64 }

// Headed is an answer with headers of its own, such as ETag and Location.
type Headed interface{ SetHeaders(h http.Header) }

// Handle is the handler of most operations: it decodes the JSON body as an In (not if
// that is None), and answers with status and what f returns as JSON, or with 204 and
// no body if Out is None. Errors are those of Decode and of f; a answers them.
func Handle[In, Out any](a Adapter, status int, f func(r *http.Request, in In) (Out, error)) http.HandlerFunc {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		var in In
		if _, none := any(in).(None); !none {
			var limit int64
			if l, ok := any(in).(Limited); ok {
				limit = l.BodyLimit()
			}
			if err := Decode(w, r, limit, &in); err != nil {
				return err
			}
		}
		out, err := f(r, in)
		if err != nil {
			return err
		}
		if h, ok := any(out).(Headed); ok {
			h.SetHeaders(w.Header())
		}
		if _, none := any(out).(None); none {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		JSON(w, status, out)
		return nil
	})
}
