package caps

import "sluice.dev/sluice/filters/caps/jsonscan"

// The marks of a system reminder, and of the section that must not get through.
const (
	reminderOpen  = "<system-reminder"
	reminderClose = "</system-reminder>"
	skillsSection = "available_skills"
)

// remind replaces, in the text v, each system reminder that has a section of
// available skills. The text around it stays. A reminder that is not closed
// reaches to the end of the text.
func (r *request) remind(v jsonscan.Value) {
	raw := v.Text(r.body)
	for at := 0; ; {
		// Reminders inside of one that is replaced go with it, so the search goes
		// on behind its end.
		open, inside, ok := jsonscan.Find(raw, at, reminderOpen)
		if !ok {
			return
		}
		at = reminderEnd(raw, inside)
		if _, _, ok := jsonscan.Find(raw[:at], inside, skillsSection); ok {
			r.edit(v.From+1+open, v.From+1+at, Fallback)
			r.report.Reminders++
		}
	}
}

// reminderEnd returns the index behind the closing tag that pairs with the
// opening tag before at: reminders may be nested.
func reminderEnd(raw []byte, at int) int {
	for depth := 1; depth > 0; {
		_, close, ok := jsonscan.Find(raw, at, reminderClose)
		if !ok {
			return len(raw)
		}
		depth--
		for i := at; ; depth++ {
			var found bool
			if _, i, found = jsonscan.Find(raw[:close], i, reminderOpen); !found {
				break
			}
		}
		at = close
	}
	return at
}
