// Package body takes the bytes that a caller sends into a folder: within its share of the
// bodies under way, within its plan, and within a time.
package body

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/limits/inflight"
)

// timeout bounds how long a body may take to arrive.
const timeout = 2 * time.Minute

// Kind is what a product takes, beside application/octet-stream and bodies that do not say
// what they are.
type Kind struct {
	Types []string // media types, or with a slash at the end all that begin so, such as video/
	Bytes string   // what to send, for errors, such as "the bytes of a film"
}

// Accept looks at the head of a request: STORAGE_002 for a body that says it is something
// else, STORAGE_001 for one that says it is larger than limit bytes.
func (k Kind) Accept(r *http.Request, limit int64) error {
	said := r.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(said)
	if said != "" && (err != nil || !k.takes(kind)) {
		return apierror.Errorf(decision.Storage002, "The body is %.100s; send %s as application/octet-stream.", kind, k.Bytes)
	}
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	return nil
}

// takes reports whether a media type is taken.
func (k Kind) takes(kind string) bool {
	return kind == "application/octet-stream" || slices.ContainsFunc(k.Types, func(t string) bool {
		return kind == t || strings.HasSuffix(t, "/") && strings.HasPrefix(kind, t)
	})
}

func tooLarge(limit int64) error {
	return apierror.Errorf(decision.Storage001, "The file is larger than %d bytes.", limit)
}

// Limit is the size of the largest body: the lesser of most bytes and a file of o's plan.
func Limit(p plans.Source, o owner.Owner, most int64) int64 {
	if l := p.Of(o.Plan).FileBytes; l > 0 {
		return min(l, most)
	}
	return most
}

// Begin takes a place of an account's share among the bodies, and makes a folder for one.
// leave gives both back. It fails with TRANSCODE_001 when there is no place.
func Begin(bodies *fairshare.Pool, account string, tool ffmpeg.Tool) (folder ffmpeg.Folder, leave func(), err error) {
	out, err := ffmpeg.TryEnter(bodies, account)
	if err != nil {
		return folder, nil, err
	}
	folder, err = tool.NewFolder()
	if err != nil {
		out()
		return folder, nil, err
	}
	return folder, func() {
		_ = folder.Close() // what is left of it is the machine's to clean
		out()
	}, nil
}

// Receive keeps the body as the folder's input and returns its size. It fails with
// STORAGE_001 behind limit bytes, and with invalid_request for a body that breaks off or
// takes longer than two minutes.
func Receive(w http.ResponseWriter, r *http.Request, folder ffmpeg.Folder, limit int64) (size int64, err error) {
	f, err := os.OpenFile(folder.Input(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("keep body: %w", err)
	}
	defer f.Close()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(timeout)) // which net/http takes back behind the body
	inflight.Stream(r, 32<<10)                                                 // io.Copy's buffer
	size, err = io.Copy(f, http.MaxBytesReader(w, r.Body, limit))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return 0, tooLarge(limit)
	}
	if err != nil {
		return 0, &apierror.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
	}
	return size, f.Close()
}
