package docsite

import (
	"io/fs"
	"regexp"
	"strings"

	"sluice.dev/sluice/platform/http/webpage"
)

// Colours of pictures, and what they are in dark: of shapes with an inside, and of lines
// and letters. What stands in neither stays.
var (
	darkInside = strings.NewReplacer("#f7f8f5", "#181f1d", "#ffffff", "#24302d", "#c9cec5", "#46534f")
	darkLine   = strings.NewReplacer("#0b6b58", "#5cd3b4", "#1c2024", "#e8ecea", "#565e65", "#a3adaa", "#c9cec5", "#46534f")
	tag        = regexp.MustCompile(`<[a-z]+ [^>]*>`)
)

// dark is a picture for people who look at dark pages.
func dark(svg string) string {
	return tag.ReplaceAllStringFunc(svg, func(t string) string {
		if strings.HasPrefix(t, "<rect ") {
			return darkInside.Replace(t)
		}
		return darkLine.Replace(t)
	})
}

// addPictures adds the pictures of docs, each as NAME.svg and as NAME-dark.svg.
func addPictures(files *webpage.Files, docs fs.FS) error {
	if err := files.Add(docs, "*.svg"); err != nil {
		return err
	}
	names, err := fs.Glob(docs, "*.svg")
	if err != nil {
		return err
	}
	for _, name := range names {
		raw, err := fs.ReadFile(docs, name)
		if err != nil {
			return err
		}
		files.Put(darkName(name), []byte(dark(string(raw))))
	}
	return nil
}

func darkName(name string) string { return strings.TrimSuffix(name, ".svg") + "-dark.svg" }

// pictured is a picture of ours in HTML.
var pictured = regexp.MustCompile(`<img src="` + Root + `/assets/([A-Za-z0-9-]+)\.[0-9a-f]+\.svg"[^>]*>`)

// both shows each picture in the colours of the page around it.
func (s *Site) both(html string) string {
	return pictured.ReplaceAllStringFunc(html, func(img string) string {
		name := pictured.FindStringSubmatch(img)[1] + ".svg"
		return `<picture><source srcset="` + s.files.Path(darkName(name)) + `" media="(prefers-color-scheme: dark)">` + img + `</picture>`
	})
}
