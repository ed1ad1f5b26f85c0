package config

// What the limit of a class means while edges of the fleet do not hear of each other.
const (
	// CutOffAvailable lets those that do hear of each other use all of the limit, and each
	// other a share besides.
	CutOffAvailable = "available"
	// CutOffStrict holds back the share of an edge that is cut off until it is known to be
	// dead, so that the fleet keeps to the limit.
	CutOffStrict = "strict"
)

// cutOff checks what a class says of edges that are cut off.
func (v *validator) cutOff(field, value string) {
	switch value {
	case "", CutOffAvailable, CutOffStrict:
	default:
		v.add(field, "is not a known choice", "available or strict")
	}
}
