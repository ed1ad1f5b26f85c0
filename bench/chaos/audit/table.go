package audit

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// shown is how many violations of one promise are printed.
const shown = 10

// PrintRun writes what went wrong, how soon all was well again, and how requests
// fared meanwhile.
func PrintRun(w io.Writer, seen Seen) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tTIMES\tLONGEST UNTIL CLIENTS WHO SAW IT WERE SERVED AGAIN")
	for _, r := range Recoveries(seen) {
		fmt.Fprintf(t, "%s\t%d\t%.1f s\n", r.Kind, r.Times, r.Worst.Seconds())
	}
	fmt.Fprintln(t, "\nREQUEST\tTRIES\tSERVED\tREFUSED\tFAILED\tOF THEM WHILE NOTHING WAS BROKEN")
	for _, r := range ByKind(seen) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\n", r.What, r.Tries, r.Served, r.Refused, r.Failed, r.FailedInCalm)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%.1f %% of the tries were served while something was broken\n\n", 100*UnderFire(seen))
	return err
}

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
