/** The version of this package, by semantic versioning. */
export const version = "0.1.0";
