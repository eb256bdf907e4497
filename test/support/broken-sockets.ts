import { Socket } from 'node:net'

/** Loaded before a program: sockets have no `_writev`, as in a future version of Node. */
Reflect.deleteProperty(Socket.prototype, '_writev')
