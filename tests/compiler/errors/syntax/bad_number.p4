const bit<8> X = 0x;
const bit<8> Y = 8w0b;
