package a

// TODO: mend it
