package inflight

import (
	"io"
	"net/http"

	"github.com/felixge/httpsnoop"
)

// answer replaces what a handler answers to a request whose body was refused.
type answer struct {
	body     *body
	refuse   func()
	begun    bool // the handler's answer, or the one in its place
	replaced bool
}

// wrap returns a writer that does it. Other than that it is w.
func (a *answer) wrap(w http.ResponseWriter) http.ResponseWriter {
	return httpsnoop.Wrap(w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(status int) {
				if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
					next(status)
					return
				}
				if a.begin(); !a.replaced {
					next(status)
				}
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(b []byte) (int, error) {
				if a.begin(); a.replaced {
					return len(b), nil
				}
				return next(b)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(from io.Reader) (int64, error) {
				if a.begin(); a.replaced {
					return io.Copy(io.Discard, from)
				}
				return next(from)
			}
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				if a.begin(); !a.replaced {
					next()
				}
			}
		},
	})
}

// begin looks, when the answer begins, whether it is to be replaced.
func (a *answer) begin() {
	if a.begun {
		return
	}
	a.begun = true
	if a.body.refused() != nil {
		a.replaced = true
		a.refuse()
	}
}

// end answers when the handler has not.
func (a *answer) end() {
	if !a.begun && a.body.refused() != nil {
		a.begin()
	}
}
