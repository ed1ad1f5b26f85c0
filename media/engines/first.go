package engines

import "context"

// First is the engine that a call would be given to now, to be asked what costs it
// nothing, such as which voices it has. Work is for Do.
func (p *Product[E]) First(ctx context.Context) (e E, ok bool) {
	for _, one := range p.order(ctx, p.Setting(ctx)) {
		return one.engine, true
	}
	return e, false
}
