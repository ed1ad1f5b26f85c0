package keyfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxLine bounds a line of a file, in bytes.
const maxLine = 64 << 10

// Formats of a file.
const (
	CSV    = "csv"
	NDJSON = "ndjson"
)

// Read calls each with every row of a file, in its order, or with what is wrong with
// one; the rows of such a line have its number alone. It stops at the first error of
// each. format "" is that which the first byte tells: { begins NDJSON. It fails for a
// header that is not one, and for a line of more than 64 KiB.
//
// It takes time linear in the file, and holds one line of it.
func Read(r io.Reader, format string, each func(Row, error) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	read, line := reader(nil), 0
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(lines.Bytes())
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(text) == 0 {
			continue
		}
		if read == nil {
			var err error
			if format, err = formatOf(format, text[0]); err != nil {
				return err
			}
			if format == NDJSON {
				read = readObject
			} else if read, err = header(text); err != nil {
				return fmt.Errorf("line %d: %w", line, err)
			} else {
				continue
			}
		}
		f, err := read(text)
		row := Row{Line: line}
		if err == nil {
			row, err = f.row(line)
		}
		if err := each(row, err); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d has more than %d bytes", line+1, maxLine)
	}
	return lines.Err()
}

// reader reads one line.
type reader func(line []byte) (fields, error)

// formatOf is format, or what the first byte of a file tells.
func formatOf(format string, first byte) (string, error) {
	switch {
	case format == CSV || format == NDJSON:
		return format, nil
	case format != "":
		return "", fmt.Errorf("the format is %s or %s", CSV, NDJSON)
	case first == '{':
		return NDJSON, nil
	}
	return CSV, nil
}

// header reads the names of columns, and returns what reads the lines behind them.
func header(line []byte) (reader, error) {
	split := splitter()
	names, err := split(line)
	if err != nil {
		return nil, errors.New("the header is not valid CSV")
	}
	for i, name := range names {
		names[i] = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(Columns, names[i]) || slices.Contains(names[:i], names[i]) {
			// It may be a key: a file without a header begins with one.
			return nil, fmt.Errorf("column %d of the header is not known, or is given twice: expected some of %s", i+1, strings.Join(Columns, ", "))
		}
	}
	return func(line []byte) (fields, error) {
		values, err := split(line)
		if err != nil {
			return nil, errors.New("the line is not valid CSV, or a quote in it does not end")
		}
		if len(values) != len(names) {
			return nil, fmt.Errorf("the line has %d values, and the header %d", len(values), len(names))
		}
		f := make(fields, len(names))
		for i, name := range names {
			f[name] = strings.TrimSpace(values[i])
		}
		return f, nil
	}, nil
}

// splitter returns what takes one line of CSV after the other apart, each by itself:
// a quote that does not end spoils its line alone.
func splitter() func(line []byte) ([]string, error) {
	source := bytes.NewReader(nil)
	lines := csv.NewReader(source)
	lines.FieldsPerRecord = -1
	return func(line []byte) ([]string, error) {
		source.Reset(line)
		return lines.Read()
	}
}

// object is a row in JSON.
type object struct {
	SHA256     string          `json:"sha256"`
	Key        string          `json:"key"`
	Name       string          `json:"name"`
	Account    string          `json:"account"`
	Scopes     scopeList       `json:"scopes"`
	ExpiresAt  json.RawMessage `json:"expires_at"`
	PerMinute  json.RawMessage `json:"rate_limit_per_minute"`
	ExternalID string          `json:"external_id"`
	Enabled    *bool           `json:"enabled"`
}

// scopeList is a list, or a text with spaces or commas between scopes.
type scopeList string

// UnmarshalJSON reads either.
func (s *scopeList) UnmarshalJSON(b []byte) error {
	var list []string
	if json.Unmarshal(b, &list) == nil {
		*s = scopeList(strings.Join(list, " "))
		return nil
	}
	return json.Unmarshal(b, (*string)(s))
}

// readObject reads a line of NDJSON. Errors of the JSON package may quote what they
// stumble over, so they are not passed on.
func readObject(line []byte) (fields, error) {
	var o object
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && slices.Contains(Columns, wrong.Field) {
			return nil, errors.New(wrong.Field + " has the wrong type")
		}
		return nil, errors.New("the line is not a JSON object of " + strings.Join(Columns, ", "))
	}
	if d.More() {
		return nil, errors.New("the line has more than one JSON object")
	}
	f := fields{"sha256": o.SHA256, "key": o.Key, "name": o.Name, "account": o.Account, "scopes": string(o.Scopes), "external_id": o.ExternalID,
		"expires_at": scalar(o.ExpiresAt), "rate_limit_per_minute": scalar(o.PerMinute)}
	if o.Enabled != nil {
		f["enabled"] = fmt.Sprint(*o.Enabled)
	}
	return f, nil
}

// scalar is a text or number as text; "" for null.
func scalar(b json.RawMessage) string {
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	if text := string(b); text != "null" {
		return text
	}
	return ""
}
