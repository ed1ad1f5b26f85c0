package schema

// task is a node that is held against the value at hand, or one that is open.
type task struct {
	node   uint32
	links  int32 // the first of those who want to know; below zero: none
	loud   bool  // what it finds is wrong with the request
	failed bool
	skip   bool // the value has another type: nothing more to see
	any    bool // a schema of anyOf holds
	holds  bool // if does
	then   bool // then does not hold
	other  bool // else does not hold
	one    uint32
	within uint32 // elements that contains is true of
	bits   int    // in the checker's: names that were seen, and dependents that failed
}

// link tells a task's outcome to another.
type link struct {
	to, next int32
	role     uint8
	n        uint32
}

// outside is whom the outermost task tells.
const outside = -1

// Roles: what the outcome of a task is to another one.
const (
	roleAll      = iota // must hold
	roleAny             // of anyOf
	roleOne             // of oneOf
	roleNot             // must not hold
	roleIf              //
	roleThen            // must hold where if does
	roleElse            // must hold where it does not
	roleDepends         // must hold where a name is there
	roleContains        // is counted
)

// seed holds a node against the value that comes next, for task to; once,
// however many ask. Several tasks of a container may ask for the same node: without
// that, schemas that refer to themselves in several alternatives would double their
// work with each level.
func (c *Checker) seed(to int, node uint32, role uint8, loud bool) {
	for i := c.base; i < len(c.tasks); i++ {
		c.budget--
		if t := &c.tasks[i]; t.node == node {
			c.links = append(c.links, link{int32(to), t.links, role, 0})
			t.links, t.loud = int32(len(c.links)-1), t.loud || loud
			return
		}
	}
	c.add1(to, node, role, 0, loud)
}

// add1 adds a task.
func (c *Checker) add1(to int, node uint32, role uint8, n uint32, loud bool) {
	c.links = append(c.links, link{int32(to), -1, role, n})
	c.tasks = append(c.tasks, task{node: node, links: int32(len(c.links) - 1), loud: loud})
}

// expand adds the schemas that apply to the same value as those which were seeded.
// Each stands behind the one that wants to know of it.
func (c *Checker) expand(object bool) {
	for i := c.base; i < len(c.tasks) && len(c.tasks) <= MaxOpen; i++ {
		c.budget--
		node := c.tasks[i].node
		if g := c.t.words[node+NodeApply]; g != 0 {
			c.apply(i, g)
		}
		if g := c.t.words[node+NodeObject]; g != 0 && object {
			p := c.t.words[g+ObjectDependents+1]
			for n := range c.t.words[g+ObjectDependents] {
				c.add1(i, c.t.words[p+n*DependentWords+1], roleDepends, n, false)
			}
		}
	}
}

// apply adds what group g of task i applies.
func (c *Checker) apply(i int, g uint32) {
	loud, p := c.tasks[i].loud, g+ApplyWords
	for role, count := range c.t.words[g+ApplyAll : g+ApplyOne+1] {
		for range count {
			c.add1(i, c.t.words[p], uint8(role), 0, loud && role == roleAll)
			p++
		}
	}
	for at := uint32(ApplyNot); at <= ApplyElse; at++ {
		if node := c.t.words[g+at]; node != 0 {
			c.add1(i, node, uint8(roleNot+at-ApplyNot), 0, false)
		}
	}
}

// settle decides the tasks from base on, those behind before those they tell, and
// forgets them and their links.
//
// closed is the container that they are of; nil: a scalar.
func (c *Checker) settle(base, links int, closed *frame) {
	for i := len(c.tasks) - 1; i >= base; i-- {
		if closed != nil && !c.tasks[i].skip {
			c.contents(i, closed)
		}
		if g := c.t.words[c.tasks[i].node+NodeApply]; g != 0 {
			c.alternatives(i, g)
		}
		ok := !c.tasks[i].failed
		for l := c.tasks[i].links; l >= 0; l = c.links[l].next {
			c.tell(c.links[l], ok)
		}
	}
	c.tasks, c.links = c.tasks[:base], c.links[:links]
}

// alternatives decides what group g says of the outcomes that task i was told.
func (c *Checker) alternatives(i int, g uint32) {
	t, w := c.tasks[i], c.t.words[g:g+ApplyWords]
	if w[ApplyAny] > 0 && !t.any {
		c.fail(i, "is none of the alternatives", c.t.at(g+ApplyAnyText))
	}
	if w[ApplyOne] > 0 && t.one == 0 {
		c.fail(i, "is none of the alternatives", c.t.at(g+ApplyOneText))
	}
	if t.one > 1 {
		c.fail(i, "is several of the alternatives", "exactly "+c.t.at(g+ApplyOneText))
	}
	if t.holds && t.then {
		c.fail(i, "does not go with the rest of the value", "what `then` asks for")
	}
	if w[ApplyIf] != 0 && !t.holds && t.other {
		c.fail(i, "does not go with the rest of the value", "what `else` asks for")
	}
}

// tell notes an outcome with whom it is for.
func (c *Checker) tell(l link, ok bool) {
	if l.to == outside {
		c.ok = c.ok && ok
		return
	}
	t := &c.tasks[l.to]
	switch l.role {
	case roleAll:
		t.failed = t.failed || !ok
	case roleAny:
		t.any = t.any || ok
	case roleOne:
		if ok {
			t.one++
		}
	case roleNot:
		if ok {
			c.fail(int(l.to), "is what it must not be", "anything but what `not` describes")
		}
	case roleIf:
		t.holds = ok
	case roleThen:
		t.then = !ok
	case roleElse:
		t.other = !ok
	case roleContains:
		if ok {
			t.within++
		}
	case roleDepends:
		if !ok && !t.skip {
			g := c.t.words[t.node+NodeObject]
			seen := int(c.t.words[g+ObjectBits]+31) / 32
			c.bits[t.bits+seen+int(l.n/bitsOfWord32)] |= 1 << (l.n % bitsOfWord32)
		}
	}
}
