// Package probe reads what films of strangers are, in a sandboxed process without
// network, files or credentials, with little memory and time. It asks for the
// bytes that it wants to see; a file that harms it harms nobody else.
package probe

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/fragments"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/process/sandbox"
)

// The names under which Child and CutChild are given to sandbox.Main.
const (
	Function    = "mediaprobe"
	CutFunction = "mediacut"
)

// Bounds of one look.
const (
	maxMemory = 256 << 20
	maxTime   = 30 * time.Second
	maxAsked  = 64 << 10 // bytes of one question
	maxSaid   = 4 << 10  // bytes of what Look finds
	maxCut    = 48 << 20 // bytes of what Cut finds: some thirty hours of a film
)

// Places is how many looks a process takes at once; an owner has a quarter of it.
const Places = 8

// New returns a Prober.
func New() Prober { return Prober{places: fairshare.New(fairshare.Config{Places: Places})} }

// Prober looks into films. Its zero value looks into none.
type Prober struct{ places *fairshare.Pool }

// Look reads what r, a film of size bytes that belongs to owner, says of itself. A
// film that is not accepted is an error of mp4; so is one that the confined process
// did not survive. Errors of r itself are returned as they are. When too many wait for
// the owner it is rate_limit_exceeded.
func (p Prober) Look(ctx context.Context, owner string, r io.ReaderAt, size int64) (mp4.Info, error) {
	var a answer
	if err := p.ask(ctx, owner, Function, maxSaid, r, size, &a); err != nil {
		return mp4.Info{}, err
	}
	return a.Info, a.err()
}

// Cut reads how the tracks of r, a film as of Look, are files of fragments. It fails as
// Look does. What it returns has passed Film.Check.
func (p Prober) Cut(ctx context.Context, owner string, r io.ReaderAt, size int64) (fragments.Film, error) {
	var f fragments.Film
	err := p.ask(ctx, owner, CutFunction, maxCut, r, size, &f)
	if err == nil && f.Check(size) != nil {
		err = mp4.ErrDamaged
	}
	return f, err
}

// Available reports whether films are looked into here.
func (p Prober) Available() bool { return p.places != nil }

// ask has a confined process run function on a film, and decodes what it says, at most
// most bytes, into said.
func (p Prober) ask(ctx context.Context, owner, function string, most uint32, r io.ReaderAt, size int64, said any) error {
	if p.places == nil {
		return apierror.Errorf(decision.NotImplemented, "Films are not accepted here: this machine cannot confine what reads them.")
	}
	leave, err := p.places.Enter(ctx, owner)
	if errors.Is(err, fairshare.ErrBusy) {
		err = &apierror.Error{Code: decision.RateLimited, RetryAfter: 5, Message: "Too many of your films are being looked into."}
	}
	if err != nil {
		return err
	}
	defer leave()
	within, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	err = sandbox.Job{Function: function, Memory: maxMemory, CPU: maxTime, Talk: func(in io.Writer, out io.Reader) (err error) {
		return serve(in, out, r, size, most, said)
	}}.Run(within)
	if s, ok := errors.AsType[*sourceError](err); ok {
		return s.error
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if sandbox.Failed(err) {
		return &apierror.Error{Code: decision.Unavailable, RetryAfter: 5, Cause: err}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", mp4.ErrDamaged, err)
	}
	return nil
}

// answer is what the confined process finds.
type answer struct {
	Info  mp4.Info `json:"info"`
	Error string   `json:"error"` // text of an error of mp4; empty: none
}

// known are the errors that a film can have.
var known = []error{mp4.ErrNotMP4, mp4.ErrNoMovie, mp4.ErrDamaged}

func (a answer) err() error {
	if a.Error == "" {
		return nil
	}
	for _, err := range known {
		if err.Error() == a.Error {
			return err
		}
	}
	return mp4.ErrDamaged
}

// sourceError is an error of the film's reader, not of the film.
type sourceError struct{ error }

// question asks for bytes of the film; with Result set its answer follows, N bytes
// long, in place of a question.
type question struct {
	At     int64
	N      uint32
	Result uint32
}

// serve answers questions until the result comes, of at most most bytes, which it
// decodes into said. The first thing it says is the film's size.
func serve(in io.Writer, out io.Reader, r io.ReaderAt, size int64, most uint32, said any) error {
	if err := binary.Write(in, binary.LittleEndian, size); err != nil {
		return err
	}
	buf := make([]byte, maxAsked)
	for {
		var q question
		if err := binary.Read(out, binary.LittleEndian, &q); err != nil {
			return err
		}
		if q.Result != 0 {
			if q.N > most {
				return errors.New("a result that is too large")
			}
			result, err := io.ReadAll(io.LimitReader(out, int64(q.N)))
			if err != nil {
				return err
			}
			return json.Unmarshal(result, said)
		}
		if q.N > maxAsked || q.At < 0 {
			return errors.New("a question that is too large")
		}
		n, err := r.ReadAt(buf[:q.N], q.At)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return &sourceError{err}
		}
		if err := binary.Write(in, binary.LittleEndian, uint32(n)); err != nil {
			return err
		}
		if _, err := in.Write(buf[:n]); err != nil {
			return err
		}
	}
}

// film is the confined process's view of the film.
type film struct {
	in  io.Reader
	out io.Writer
}

// ReadAt asks for bytes.
func (f film) ReadAt(p []byte, at int64) (int, error) {
	if err := binary.Write(f.out, binary.LittleEndian, question{At: at, N: uint32(len(p))}); err != nil {
		return 0, err
	}
	var n uint32
	if err := binary.Read(f.in, binary.LittleEndian, &n); err != nil {
		return 0, err
	}
	if int(n) > len(p) {
		return 0, errors.New("an answer that is too long")
	}
	got, err := io.ReadFull(f.in, p[:n])
	if err == nil && got < len(p) {
		err = io.EOF
	}
	return got, err
}

// Child is what runs confined: it returns an exit status.
func Child() int {
	f := film{os.Stdin, os.Stdout}
	return whole(f, sizeOf(f))
}

// sizeOf hears how long the film is; -1: nobody says so.
func sizeOf(f film) (size int64) {
	if binary.Read(f.in, binary.LittleEndian, &size) != nil {
		return -1
	}
	return size
}

// whole reads a film of this size and tells what it found.
func whole(f film, size int64) int {
	var a answer
	info, err := mp4.Parse(f, size)
	a.Info = info
	for _, k := range known {
		if errors.Is(err, k) {
			a.Error, err = k.Error(), nil
		}
	}
	return f.tell(a, err)
}

// CutChild is what runs confined to cut a film: it returns an exit status.
func CutChild() int {
	f := film{os.Stdin, os.Stdout}
	cut, err := fragments.Read(f, sizeOf(f))
	return f.tell(cut, err)
}

// tell says what was found, if there is no error, and returns an exit status.
func (f film) tell(found any, err error) int {
	said, merr := json.Marshal(found)
	if err = errors.Join(err, merr); err == nil {
		err = binary.Write(f.out, binary.LittleEndian, question{N: uint32(len(said)), Result: 1})
	}
	if err == nil {
		_, err = f.out.Write(said)
	}
	if err != nil {
		return 1
	}
	return 0
}
