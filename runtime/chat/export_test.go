package chat

// Known is of how many credentials p knows that they failed.
func (p *Pool) Known() (n int) {
	for _, t := range p.targets {
		n += len(t.health)
	}
	return n
}
