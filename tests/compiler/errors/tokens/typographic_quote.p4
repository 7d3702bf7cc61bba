const bit<8> X = 8w1;
@name(“x”) const bit<8> Y = 2;
