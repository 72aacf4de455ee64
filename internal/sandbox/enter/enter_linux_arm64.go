package enter

const sysSeccomp = 277
