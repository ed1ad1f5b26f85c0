package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

const checksHeading = "| document | bytes | routes | validated | not validated | nothing to validate | import | schemas | tables | why not |\n" +
	"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"

// runChecks imports the documents at paths, or all that are fetched, with their
// requests validated, and says of how many routes they are.
func runChecks(ctx context.Context, folder string, paths []string) error {
	var files []file
	for _, path := range paths {
		files = append(files, file{filepath.Base(path), path})
	}
	if len(files) == 0 {
		var err error
		if files, err = fetch(ctx, folder); err != nil {
			return err
		}
	}
	fmt.Print(checksHeading)
	failed, routes, validated, not := 0, 0, 0, 0
	why := map[string]int{}
	for _, f := range files {
		r, err := imported(f.path)
		if err != nil {
			failed++
			fmt.Printf("| %s | **%s** |\n", f.name, strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		routes, validated, not = routes+r.routes, validated+r.result.Validated, not+r.result.Unvalidated
		fmt.Println(r.checksLine(f, why))
	}
	fmt.Printf("\n%d documents, %d failed: %d routes, of which %d are validated, %d not, and %d have nothing to validate\n", len(files), failed, routes, validated, not, routes-validated-not)
	for _, reason := range slices.SortedFunc(maps.Keys(why), func(a, b string) int { return cmp.Or(why[b]-why[a], strings.Compare(a, b)) }) {
		fmt.Printf("%d × %s\n", why[reason], reason)
	}
	if failed > 0 {
		return errors.New("not every document was imported")
	}
	return nil
}

// checksLine is the line of a document; it counts into why.
func (r row) checksLine(f file, why map[string]int) string {
	var reasons []string
	for _, n := range r.notes {
		what := n.What
		reason, whole := strings.CutPrefix(what, "not validated: ")
		if _, part := strings.CutSuffix(what, ": not validated"); !whole && !part {
			continue
		}
		why[what] += n.Count
		reasons = append(reasons, fmt.Sprintf("%d %s", n.Count, reason))
	}
	text, tables := config.Document{Products: []config.Product{r.result.Product}, Routes: r.result.Routes}.ChecksSize()
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %s | %d | %d | %s |", f.name, r.bytes, r.routes, r.result.Validated, r.result.Unvalidated,
		r.routes-r.result.Validated-r.result.Unvalidated, r.took.Round(time.Millisecond), text, tables, cmp.Or(strings.Join(reasons, "; "), "-"))
}
