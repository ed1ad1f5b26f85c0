package docsite

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// release is what a changelog says of a version.
type release struct {
	name    string
	notes   []string // what to do when upgrading
	changes []part
}

// part is a group of changes.
type part struct {
	title string
	items []string // each a bullet of one or several lines
}

// Changes makes pages of a changelog: one of each version, the newest called changelog, and
// one of what there is to do when upgrading, version by version. Unless a deployment has all products, changes
// that name the others are left out. It reads the changelog in one pass.
func Changes(changelog []byte, all bool) []Source {
	releases := parsed(changelog, all)
	var list []Source
	notes := bytes.NewBufferString("# Upgrade notes by version\n\nWhat to do when a version comes after the one that runs, newest first; how to upgrade without an interruption is in [upgrading](upgrading.md).\n")
	var earlier strings.Builder
	for i, r := range releases {
		if r.notes != nil {
			fmt.Fprintf(notes, "\n## %s\n\n%s", r.name, strings.Join(r.notes, ""))
		}
		if i > 0 {
			fmt.Fprintf(&earlier, "- [%s](%s.md)\n", r.name, r.page(i))
		}
	}
	for i, r := range releases {
		var b bytes.Buffer
		title := "Changelog"
		if i > 0 {
			title += ": " + r.name
		}
		fmt.Fprintf(&b, "# %s\n\nWhat users notice of %s. What to do when upgrading: [upgrade notes](upgrade-notes.md).\n", title, r.name)
		for _, p := range r.changes {
			fmt.Fprintf(&b, "\n## %s\n\n%s", p.title, strings.Join(p.items, ""))
		}
		if i == 0 && earlier.Len() > 0 {
			b.WriteString("\n## Earlier versions\n\n" + earlier.String())
		}
		list = append(list, Source{r.page(i), b.Bytes()})
	}
	return append(list, Source{"upgrade-notes", notes.Bytes()})
}

// page is the name of the page of a version; the newest has place 0.
func (r release) page(place int) string {
	if place == 0 {
		return "changelog"
	}
	return "changelog-" + strings.ToLower(strings.Trim(notName.ReplaceAllString(r.name, "-"), "-"))
}

var (
	notName  = regexp.MustCompile(`[^A-Za-z0-9.]+`)
	fromRoot = strings.NewReplacer("](docs/", "](", "](bench/", "](../bench/", "](deploy/", "](../deploy/", "](ARCHITECTURE.md", "](../ARCHITECTURE.md", "](RATIONALE.md", "](../RATIONALE.md")
)

// parsed reads a changelog: versions are headings of level 2, groups of level 3, changes are bullets.
func parsed(changelog []byte, all bool) (list []release) {
	group := part{}
	var item strings.Builder
	endItem := func() {
		if s := item.String(); s != "" && (all || !speaksOfProducts(s)) {
			group.items = append(group.items, s)
		}
		item.Reset()
	}
	endGroup := func() {
		endItem()
		if len(list) > 0 && group.items != nil {
			r := &list[len(list)-1]
			if strings.HasPrefix(group.title, "Upgrading") {
				r.notes = append(r.notes, group.items...)
			} else {
				r.changes = append(r.changes, group)
			}
		}
		group = part{title: "Changes"}
	}
	for line := range strings.Lines(fromRoot.Replace(string(changelog))) {
		switch {
		case strings.HasPrefix(line, "## "):
			endGroup()
			list = append(list, release{name: strings.TrimSpace(line[3:])})
		case strings.HasPrefix(line, "### "):
			endGroup()
			group.title = strings.TrimSpace(line[4:])
			if !all && speaksOfProducts(group.title) {
				group.title = "Webhooks"
			}
		case strings.HasPrefix(line, "- "):
			endItem()
			item.WriteString(line)
		case strings.TrimSpace(line) != "" && item.Len() > 0:
			item.WriteString(line)
		}
	}
	endGroup()
	return list
}
