// placeholder, written in a moment
export {}
