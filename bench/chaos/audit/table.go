package audit

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// shown is how many violations of one promise are printed.
const shown = 10

// Print writes the verdicts as one table, and below it what was broken.
func Print(w io.Writer, lines []Line) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PROMISE\tCHECKED\tBROKEN\tNOTE")
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\n", l.Promise, l.Checked, len(l.Broken), l.Note)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, l := range lines {
		for i, b := range l.Broken {
			if i == shown {
				fmt.Fprintf(w, "  … and %d more\n", len(l.Broken)-shown)
				break
			}
			fmt.Fprintf(w, "broken: %s: %s\n", l.Promise, b)
		}
	}
	return nil
}
