package backup

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Format is the number of the layout: a gzipped tar of backup.json, the rows of
// each table in pieces in the order of the header, and end.json.
const Format = 1

// Names in the archive.
const (
	headName  = "backup.json"
	endName   = "end.json"
	rowsUnder = "tables/"
)

// Bounds of what is read of an archive.
const (
	pieceSize = 1 << 20 // of rows, in bytes
	maxJSON   = 1 << 20
)

// Header comes first in a backup.
type Header struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created_at"`
	Build   string    `json:"build"`
	// Schema is the number of the last migration of the database.
	Schema uint `json:"schema"`
	// SecretsKey is the fingerprint of the key that the secrets in it are sealed
	// with; empty: not known.
	SecretsKey string  `json:"secrets_key,omitempty"`
	Tables     []Table `json:"tables"`
}

// Table is one whose rows are in a backup. Tables that others refer to come
// before those.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// End comes last. A backup without it is not whole.
type End struct {
	Rows      map[string]int64 `json:"rows"`      // by table
	Sequences map[string]int64 `json:"sequences"` // the last number given, by sequence
}

// errBroken is the error for what is no whole backup.
var errBroken = errors.New("the file is no whole backup of sluice")

// writer writes a backup.
type writer struct {
	gz    *gzip.Writer
	tar   *tar.Writer
	at    time.Time
	table string
	piece []byte
	count int
}

func newWriter(w io.Writer, h Header) (*writer, error) {
	gz, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	b := &writer{gz: gz, tar: tar.NewWriter(gz), at: h.Created}
	return b, b.json(headName, h)
}

func (b *writer) json(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.entry(name, text)
}

func (b *writer) entry(name string, text []byte) error {
	if err := b.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: b.at, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := b.tar.Write(text)
	return err
}

// begin has Write take the rows of a table.
func (b *writer) begin(table string) { b.table, b.count = table, 0 }

// Write implements io.Writer.
func (b *writer) Write(p []byte) (int, error) {
	b.piece = append(b.piece, p...)
	if len(b.piece) < pieceSize {
		return len(p), nil
	}
	return len(p), b.flush()
}

// flush writes the rows that are gathered.
func (b *writer) flush() error {
	for len(b.piece) > 0 {
		n := min(len(b.piece), pieceSize)
		b.count++
		if err := b.entry(fmt.Sprintf("%s%s/%08d", rowsUnder, b.table, b.count), b.piece[:n]); err != nil {
			return err
		}
		b.piece = b.piece[:copy(b.piece, b.piece[n:])]
	}
	return nil
}

func (b *writer) close(e End) error {
	if err := b.json(endName, e); err != nil {
		return err
	}
	return errors.Join(b.tar.Close(), b.gz.Close())
}

// reader reads a backup, in order.
type reader struct {
	Header Header
	gz     *gzip.Reader
	tar    *tar.Reader
	name   string // of the piece at hand
}

func newReader(r io.Reader) (*reader, error) {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return nil, errBroken
	}
	b := &reader{gz: gz, tar: tar.NewReader(gz)}
	if err := b.next(); err != nil {
		return nil, err
	}
	if err := b.json(headName, &b.Header); err != nil {
		return nil, err
	}
	if b.Header.Format != Format {
		return nil, fmt.Errorf("the backup has format %d, and this version of sluice reads %d", b.Header.Format, Format)
	}
	return b, b.next()
}

// next goes to the next piece.
func (b *reader) next() error {
	h, err := b.tar.Next()
	if err != nil {
		return errBroken
	}
	b.name = h.Name
	return nil
}

// json reads the piece at hand, which must have this name.
func (b *reader) json(name string, v any) error {
	text, err := io.ReadAll(io.LimitReader(b.tar, maxJSON))
	if err != nil || b.name != name || json.Unmarshal(text, v) != nil {
		return errBroken
	}
	return nil
}

// rows reads the rows of a table.
func (b *reader) rows(table string) io.Reader { return &rows{b, rowsUnder + table + "/"} }

type rows struct {
	*reader
	prefix string
}

// Read implements io.Reader.
func (r *rows) Read(p []byte) (int, error) {
	for strings.HasPrefix(r.name, r.prefix) {
		n, err := r.tar.Read(p)
		if n > 0 || err == nil {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, errBroken
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

// end reads to the end, and that nothing is missing.
func (b *reader) end() (e End, err error) {
	if err := b.json(endName, &e); err != nil {
		return e, err
	}
	if _, err := b.tar.Next(); !errors.Is(err, io.EOF) {
		return e, errBroken
	}
	if _, err := io.Copy(io.Discard, b.gz); err != nil { // which checks the sum
		return e, errBroken
	}
	return e, nil
}
