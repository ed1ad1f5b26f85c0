package requestlog

// What an edge records in a second, at most. Failures of known accounts, failures of
// nobody known and the sample of the others have places of their own, and in each of
// these one account, or one address, may take no more than its share: whoever fails
// in a loop pushes nobody else's failures out.
const (
	failuresEach  = 20
	failuresAll   = 100
	strangersEach = 20
	strangersAll  = 60
	samplesEach   = 20
	samplesAll    = 50
)

// budget is how many of one kind may be recorded in a second.
type budget struct {
	each, all int
	second    int64
	taken     int
	by        map[string]int // has at most all entries
}

func newBudget(each, all int) budget { return budget{each: each, all: all, by: map[string]int{}} }

// take reports whether there is a place in the second for one of who's.
func (b *budget) take(second int64, who []byte) bool {
	if second != b.second {
		b.second, b.taken = second, 0
		clear(b.by)
	}
	if b.taken >= b.all || b.by[string(who)] >= b.each {
		return false
	}
	b.taken++
	b.by[string(who)]++
	return true
}
