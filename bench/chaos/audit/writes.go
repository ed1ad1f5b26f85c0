package audit

// Write is something that a client asked to be made, perhaps several times with
// one Idempotency-Key, until it had an answer or gave up.
type Write struct {
	Kind, Name string // the name is unique to the write
	ID         string // from a 2xx answer; empty: none came
	Delete     bool   // it was asked to be deleted
	Deleted    bool   // and that was answered with 2xx
}

// Thing is a row that such a write makes.
type Thing struct{ Kind, Name, ID string }

func byName(things []Thing) map[Thing][]Thing {
	all := map[Thing][]Thing{}
	for _, t := range things {
		k := Thing{Kind: t.Kind, Name: t.Name}
		all[k] = append(all[k], t)
	}
	return all
}

func (w Write) in(all map[Thing][]Thing) []Thing { return all[Thing{Kind: w.Kind, Name: w.Name}] }

func acceptedWrites(seen Seen, stored Stored) Line {
	l := Line{Promise: "no accepted write is lost"}
	all := byName(stored.Things)
	for _, w := range seen.Writes {
		if w.ID == "" || w.Delete {
			continue
		}
		l.Checked++
		found := false
		for _, t := range w.in(all) {
			found = found || t.ID == w.ID
		}
		if !found {
			l.breaks("%s %s was accepted as %s and is not stored", w.Kind, w.Name, w.ID)
		}
	}
	return l
}

func repeatedWrites(seen Seen, stored Stored) Line {
	l := Line{Promise: "a repeated request takes effect once", Checked: len(seen.Writes)}
	all := byName(stored.Things)
	for _, w := range seen.Writes {
		if n := len(w.in(all)); n > 1 {
			l.breaks("%s %s is stored %d times", w.Kind, w.Name, n)
		}
	}
	return l
}

func deletions(seen Seen, stored Stored) Line {
	l := Line{Promise: "what was deleted stays deleted"}
	all := byName(stored.Things)
	for _, w := range seen.Writes {
		if !w.Deleted {
			continue
		}
		l.Checked++
		if len(w.in(all)) > 0 {
			l.breaks("%s %s was deleted and is stored", w.Kind, w.Name)
		}
	}
	return l
}
