package definition

import "maps"

// Mask stands for the value of a header wherever a schedule is shown: many are
// tokens, and whoever may read schedules need not be able to use them.
const Mask = "***"

// Sealed stands in a stored definition for the value of a header that is kept beside
// it, sealed. No header may have it: whoever does not know it makes no call with it.
const Sealed = "\nsealed"

// Masked returns w without the values of its headers.
func (w *Webhook) Masked() *Webhook {
	if w == nil || len(w.Headers) == 0 {
		return w
	}
	shown := *w
	shown.Headers = maps.Clone(w.Headers)
	for name := range shown.Headers {
		shown.Headers[name] = Mask
	}
	return &shown
}

// Keep puts the values of before back where w has the mask, so that what was shown
// can be sent back.
func (w *Webhook) Keep(before *Webhook) {
	if w == nil || before == nil {
		return
	}
	for name, value := range w.Headers {
		if old, ok := before.Headers[name]; ok && value == Mask {
			w.Headers[name] = old
		}
	}
}
