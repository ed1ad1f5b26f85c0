package vision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Builtin reads text with Tesseract, in a process of its own in the sandbox of ffmpeg.
type Builtin struct {
	// Tesseract is the program. In its folder are the data of its languages (tessdata)
	// and its name and version in a line (VERSION). Empty: no text is read.
	Tesseract string
}

// Bounds of one reading.
const (
	maxMemory  = 1 << 30
	maxTable   = 8 << 20 // bytes of what it writes
	maxVersion = 100     // bytes
	cpuTime    = 5 * time.Minute
)

// Features are text, where there is a Tesseract.
func (b Builtin) Features() []string {
	if b.Tesseract == "" {
		return nil
	}
	return []string{Texts}
}

// Copy is the kind of copy that it reads.
func (b Builtin) Copy() string {
	if b.Tesseract == "" {
		return copyNone
	}
	return copyGray
}

// Check says whether the program and a language are there.
func (b Builtin) Check(context.Context) (string, error) {
	const faces = "pigo 1.4.6"
	if b.Tesseract == "" {
		return faces, nil
	}
	if _, err := os.Stat(b.Tesseract); err != nil {
		return "", err
	}
	list, err := b.languages()
	if err == nil && len(list) == 0 {
		err = errors.New("there is no language")
	}
	if err != nil {
		return "", err
	}
	version, err := os.ReadFile(filepath.Join(filepath.Dir(b.Tesseract), "VERSION"))
	if err != nil {
		version = []byte("Tesseract") // of an operator
	}
	return decision.Cut(strings.TrimSpace(string(version))+" ("+strings.Join(list, ", ")+"), "+faces, maxVersion), nil
}

func (b Builtin) data() string { return filepath.Join(filepath.Dir(b.Tesseract), "tessdata") }

// languages are those that there is data for, as Tesseract calls them.
func (b Builtin) languages() (list []string, err error) {
	found, err := filepath.Glob(filepath.Join(b.data(), "*.traineddata"))
	for _, file := range found {
		if name := strings.TrimSuffix(filepath.Base(file), ".traineddata"); name != "osd" && name != "equ" {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, err
}

// chosen are the languages of a request, as Tesseract takes them: English, or the first,
// unless told. It fails with invalid_request for one that there is no data for.
func (b Builtin) chosen(asked []string) (string, error) {
	have, err := b.languages()
	if err != nil || len(have) == 0 {
		return "", fmt.Errorf("find languages of Tesseract: %w", errors.Join(err, os.ErrNotExist))
	}
	if len(asked) == 0 {
		if slices.Contains(have, "eng") {
			return "eng", nil
		}
		return have[0], nil
	}
	var names []string
	for _, tag := range asked {
		name := tag
		if parsed, err := language.Parse(tag); err == nil && !slices.Contains(have, tag) {
			base, _ := parsed.Base()
			name = base.ISO3()
		}
		if !slices.Contains(have, name) {
			return "", apierror.Invalid([]decision.Detail{{Field: "language", Issue: "is not one that can be read here", Expected: "some of " + strings.Join(have[:min(len(have), 20)], ", ") + ", with commas"}})
		}
		names = append(names, name)
	}
	return strings.Join(names, "+"), nil
}

// Ways in which Tesseract looks for text (--psm).
const (
	page   = "3"  // columns and paragraphs
	sparse = "11" // words anywhere
)

// See reads the text of a copy, first as a page, and where there is none, anywhere. It
// takes about a second for a page of a million pixels.
func (b Builtin) See(ctx context.Context, a Ask, s Shown, p *Picture) error {
	if b.Tesseract == "" || !a.Wants(Texts) {
		return nil
	}
	languages, err := b.chosen(a.Languages)
	if err != nil {
		return err
	}
	for _, way := range []string{page, sparse} {
		table, err := b.read(ctx, s.Folder, languages, way)
		if err != nil {
			return err
		}
		t := ParseTable(table, s.Scale)
		t.Languages = strings.Split(languages, "+")
		if p.Text = &t; len(t.Words) > 0 {
			break
		}
	}
	return nil
}

// read runs Tesseract on the input of a folder.
func (b Builtin) read(ctx context.Context, folder ffmpeg.Folder, languages, way string) ([]byte, error) {
	result := filepath.Join(folder.Path, "text")
	err := sandbox.Job{Program: b.Tesseract, Folder: folder.Path, Read: []string{b.data()}, Memory: maxMemory, FileSize: maxTable, CPU: cpuTime,
		Args: []string{folder.Input(), result, "--tessdata-dir", b.data(), "-l", languages, "--psm", way, "tsv"}}.Run(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("read text: %w", err)
	}
	table, err := os.ReadFile(result + ".tsv")
	if err != nil {
		return nil, fmt.Errorf("read text: %w", err)
	}
	return table, nil
}
